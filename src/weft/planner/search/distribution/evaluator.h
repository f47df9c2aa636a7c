// weft/planner/search/distribution/evaluator.h -- cost of the distributions of a plan on a cluster.
//
//   Evaluator evaluator(graph, machine);
//   WEFT_TRY(cost, evaluator.estimate(distribution));     // repeated layers folded; cached
//   WEFT_TRY(whole, evaluator.predict(distribution));     // all layers: the plan and its prediction
//
// Both distribute, localize, compile and simulate. The estimate does this for two shorter versions
// of the plan and extrapolates linearly (fold.h). A plan is simulated only once per session.
#pragma once
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "weft/base/hash.h"
#include "weft/base/result.h"
#include "weft/parallel/distribute/decompose_nodes.h"
#include "weft/parallel/distribute/distribute.h"
#include "weft/parallel/distribute/signatures.h"
#include "weft/planner/search/distribution/fold.h"
#include "weft/planner/search/distribution/plan_lower_bounds.h"
#include "weft/planner/search/distribution/search_watch.h"
#include "weft/planner/search/requirements.h"
#include "weft/predict/sim/step/predict.h"

namespace weft::search {

// Properties of the cluster for evaluation.
struct Machine {
  std::function<Result<cost::StepCosts>(const plan::Mesh&)> costs;
  std::function<Result<std::vector<distribute::AxisCost>>(const plan::Mesh&)> prices;
  int workers = 1;      // per rank
  bool overlap = true;  // collectives overlap with computation
  // Peak rate of a device per dtype; null: no lower bounds.
  std::function<double(plan::DType)> peak = {};
  double launch_seconds = 0, convolution_rate = 1, bytes_per_second = 0;  // see plan_lower_bounds.h
  // Digest of everything the above depends on, except the mesh: machines with the same digest have
  // the same costs. Zero: results of other evaluators must not be reused.
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
  // After the watch is over, only known results are returned, else an error. A plan that does not
  // support `asked` is an error too. REQUIRES: the graph outlives it, and `known` if given.
  Evaluator(const plan::Graph& graph, Machine machine, KnownPlans* known = nullptr, Watching watching = {},
            const Asked& asked = {});

  const plan::Graph& graph() const { return graph_; }
  SearchWatch& watch() const { return watch_; }

  Result<Evaluation> estimate(const distribute::Distribution& distribution);
  // Lower bounds (plan_lower_bounds.h) without simulation. For distributions already simulated, their
  // costs; for those that cannot be planned, infinity. This and the next function use all
  // processors.
  std::vector<Least> lower_bounds_of(std::span<const distribute::Distribution> distributions);
  // Whether an earlier distribution leads to the same plan.
  bool is_repeated(const distribute::Distribution& distribution) const {
    return same_as_.contains(distribute::print(distribution));
  }
  // Estimates these. Skips those that reach `bar` seconds by the time of their longer version plus
  // a lower bound for the further layers.
  void estimate_all(std::span<const distribute::Distribution* const> distributions,
                    double bar = std::numeric_limits<double>::infinity());
  Result<PredictedPlan> predict(const distribute::Distribution& distribution,
                                const sim::PredictOptions& options = {}) const;

  // Predicts with all layers and packed memory, but as if all ranks were alike. Runs in parallel
  // and does not return plans. Unlike estimates, this includes waits between values that share
  // memory.
  std::vector<Result<Evaluation>> refine(std::span<const distribute::Distribution> distributions) const;

  // A part of the plan by itself (chain.h). Not counted as an estimate.
  struct PartQuestion {
    const plan::Graph* part;
    distribute::Distribution distribution;
  };
  std::vector<Result<Evaluation>> estimate_parts(std::span<const PartQuestion> questions) const;

  bool knows(const distribute::Distribution& distribution) const {
    return known_.contains(plainest(distribute::print(distribution)));
  }
  std::int64_t estimates() const { return static_cast<std::int64_t>(known_.size()); }
  std::int64_t failures() const;  // estimates that could not be planned
  std::int64_t ruled_out() const { return static_cast<std::int64_t>(least_.size()); }
  // Layers of the plan, and those simulated for an estimate; folded_layers() is 0 if all are
  // simulated.
  std::int64_t layers() const { return layers_; }
  std::int64_t folded_layers() const { return longer_ ? kLonger : 0; }
  // Share of the plan that an estimate simulates, in both versions together; 1: all of it, once.
  double looked_at() const {
    return longer_ ? static_cast<double>(kShorter + kLonger) / static_cast<double>(layers_) : 1;
  }

 private:
  static constexpr std::int64_t kShorter = 4, kLonger = 5;
  // Two versions are simulated instead of the whole plan. With fewer layers that would be more
  // work.
  static constexpr std::int64_t kFewestFolded = kShorter + kLonger;

  // Data that is the same for all distributions of a plan.
  struct Shared {
    distribute::Signatures signatures;
    distribute::DecompositionCache openings;

    explicit Shared(const plan::Graph& graph) : signatures(graph), openings(graph) {}
  };
  // A distributed plan, ready for simulation.
  struct Spread {
    distribute::DistributedPlan plan;
    cost::StepCosts costs;
  };
  // What is known of a distribution before simulation; for the longer version, if there is one.
  struct Glance {
    Spread spread;
    Digest plan;
    Least least;
    double further_seconds = 0;  // part of `least` for the layers that the longer version lacks
  };

  distribute::Distribution without_dropped_layers(const distribute::Distribution& distribution) const;
  Result<Spread> spread(const plan::Graph& graph, const distribute::Distribution& distribution,
                        Shared& shared) const;
  Result<Spread> spread_whole(const plan::Graph& graph, const distribute::Distribution& distribution,
                              Shared& shared) const;
  Result<Spread> spread(const distribute::Distribution& distribution) const;
  Result<Glance> glance(const distribute::Distribution& distribution) const;
  Digest key_of(const distribute::DistributedPlan& plan) const;
  Result<Evaluation> simulate(const Spread& spread) const;
  Result<Evaluation> simulate_shorter(const distribute::Distribution& distribution) const;
  Result<Evaluation> simulate_longer(const distribute::Distribution& distribution) const;
  const std::string& plainest(const std::string& text) const;

  const plan::Graph& graph_;
  Machine machine_;
  Asked asked_;
  std::int64_t layers_ = 0;
  Folded folded_ = Folded::longest;
  std::optional<plan::Graph> shorter_, longer_;  // used if longer_ is set
  using Names = std::set<std::string, std::less<>>;
  mutable std::once_flag named_;
  mutable Names names_, shorter_names_;                    // of tensors, filled on demand
  mutable std::optional<Shared> shared_, shorter_shared_;  // for the simulated versions
  KnownPlans* known_plans_;
  // By text of the distribution; the first of those that lead to the same plan.
  std::map<std::string, Result<Evaluation>, std::less<>> known_;
  std::map<std::string, Least, std::less<>> least_;             // of those that were not simulated
  std::map<std::string, double, std::less<>> further_seconds_;  // of all in least_ at some time
  std::map<std::string, Spread, std::less<>> spreads_;          // of some of the latest
  std::map<std::string, std::string, std::less<>> same_as_;     // text -> first text with the same plan
  std::map<Digest, std::string> first_with_;                    // by plan
  mutable SearchWatch watch_;
  // By structure and mesh.
  mutable std::mutex mutex_;
  mutable std::map<Digest, Evaluation> plans_;
};

}  // namespace weft::search
