// weft/search/evaluator.h -- what a distribution of one plan on one cluster costs.
//
//   Evaluator evaluator(graph, phases, machine);
//   WEFT_TRY(cost, evaluator.estimate(distribution));     // folded where layers repeat, and remembered
//   WEFT_TRY(whole, evaluator.predict(distribution));     // every layer: the plan and its prediction
//
// Both are the same way: distribute, localize, compile, simulate. The estimate goes it for two short versions
// of the plan and continues the straight line through them (fold.h). A plan that was simulated once, in this
// search or another of the session, is not simulated again.
#pragma once
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "weft/base/hash.h"
#include "weft/base/result.h"
#include "weft/distribute/distribute.h"
#include "weft/search/fold.h"
#include "weft/sim/predict.h"

namespace weft::search {

// What must be known of the cluster.
struct Machine {
  std::function<Result<cost::StepCosts>(const plan::Mesh&)> costs;
  std::function<Result<std::vector<distribute::AxisPrice>>(const plan::Mesh&)> prices;
  int workers = 1;      // of a rank
  bool overlap = true;  // collectives run beside computing
  // What a device computes at most in a second; null: not known.
  std::function<double(plan::DType)> peak = {};
  // Stands for all that the above depends on, the mesh aside: two machines of one digest price alike. Zero:
  // nothing that is known of others may be used.
  Digest digest = {};
};

struct Evaluation {
  double seconds = 0;
  double compute_seconds = 0, communication_seconds = 0, exposed_communication_seconds = 0;
  double peak_bytes = 0;
  sim::MemoryByKind memory;
  std::vector<sim::AxisTraffic> traffic;
};

class KnownPlans;

struct PredictedPlan {
  distribute::DistributedPlan plan;
  sim::Prediction prediction;

  Evaluation evaluation() const;
};

class Evaluator {
 public:
  // REQUIRES: the graph outlives it, and `known` where there is one.
  Evaluator(const plan::Graph& graph, const distribute::Phases& phases, Machine machine,
            KnownPlans* known = nullptr);

  const plan::Graph& graph() const { return graph_; }
  const distribute::Phases& phases() const { return phases_; }

  Result<Evaluation> estimate(const distribute::Distribution& distribution);
  // Makes these known, on as many threads as there are processors, but simulates no more than `most`; those
  // that certainly take more than `ceiling` seconds are ruled out before that (least_of_plan.h).
  void estimate_all(std::span<const distribute::Distribution> distributions, std::int64_t most,
                    double ceiling = std::numeric_limits<double>::infinity());
  bool rules_out(const distribute::Distribution& distribution, double ceiling) const;
  Result<PredictedPlan> predict(const distribute::Distribution& distribution,
                                const sim::PredictOptions& options = {}) const;

  // The same for several at once, without their plans.
  std::vector<Result<Evaluation>> predict_all(std::span<const distribute::Distribution> distributions) const;

  // A part of the plan by itself (chain.h). These are not counted among the estimates.
  struct PartQuestion {
    const Folded* part;
    distribute::Distribution distribution;
  };
  std::vector<Result<Evaluation>> estimate_parts(std::span<const PartQuestion> questions) const;

  bool knows(const distribute::Distribution& distribution) const {
    return known_.contains(distribute::print(distribution));
  }
  std::int64_t estimates() const { return static_cast<std::int64_t>(known_.size()); }
  std::int64_t failures() const;  // of the estimates: what could not be planned
  std::int64_t ruled_out() const { return static_cast<std::int64_t>(least_.size()); }
  // Layers of the plan that an estimate stands for, and those it looks at; both 0 when it looks at all.
  std::int64_t layers() const { return layers_; }
  std::int64_t folded_layers() const { return longer_ ? kLonger : 0; }

 private:
  static constexpr std::int64_t kShorter = 4, kLonger = 5;

  // The costs of a distribution, or only the least they can be where that is above the ceiling.
  struct Looked {
    Result<Evaluation> evaluation;
    std::optional<double> least = {};
  };
  struct Spread;  // a plan on its mesh, ready to be simulated

  Looked look(const distribute::Distribution& distribution, double ceiling) const;
  distribute::Distribution without_dropped_layers(const distribute::Distribution& distribution) const;
  Result<Spread> spread(const Folded& plan, const distribute::Distribution& distribution) const;
  Result<Spread> spread(const plan::Graph& graph, const distribute::Phases& phases,
                        const distribute::Distribution& distribution) const;
  Result<Evaluation> simulate(const Spread& spread) const;

  const plan::Graph& graph_;
  distribute::Phases phases_;
  Machine machine_;
  std::int64_t layers_ = 0;
  std::optional<Folded> shorter_, longer_;  // both are used where the longer one is there
  KnownPlans* known_plans_;
  std::map<std::string, Result<Evaluation>, std::less<>> known_;  // by the distribution's text
  std::map<std::string, double, std::less<>> least_;              // of those ruled out
  // Different words may lead to one plan: by its structure and mesh.
  mutable std::mutex mutex_;
  mutable std::map<Digest, Evaluation> plans_;
};

}  // namespace weft::search
