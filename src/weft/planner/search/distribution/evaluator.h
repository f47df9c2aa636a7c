// weft/planner/search/distribution/evaluator.h -- what a distribution of one plan on one cluster costs.
//
//   Evaluator evaluator(graph, machine);
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
#include <set>
#include <span>
#include <string>
#include <vector>

#include "weft/base/hash.h"
#include "weft/base/result.h"
#include "weft/parallel/distribute/distribute.h"
#include "weft/parallel/distribute/open_nodes.h"
#include "weft/parallel/distribute/signatures.h"
#include "weft/planner/search/distribution/fold.h"
#include "weft/planner/search/distribution/least_of_plan.h"
#include "weft/planner/search/distribution/search_watch.h"
#include "weft/planner/search/requirements.h"
#include "weft/predict/sim/step/predict.h"

namespace weft::search {

// What must be known of the cluster.
struct Machine {
  std::function<Result<cost::StepCosts>(const plan::Mesh&)> costs;
  std::function<Result<std::vector<distribute::AxisPrice>>(const plan::Mesh&)> prices;
  int workers = 1;      // of a rank
  bool overlap = true;  // collectives run beside computing
  // What a device computes at most in a second, and what a launch takes; null: nothing is ruled out.
  std::function<double(plan::DType)> peak = {};
  double launch_seconds = 0, convolution_rate = 1, bytes_per_second = 0;  // as least_of_plan.h has them
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
  // Once the watch is over, nothing is evaluated any more: answers are those that are known, or an error. A plan that
  // cannot keep what is asked is an error too. REQUIRES: the graph outlives it, and `known` where there is one.
  Evaluator(const plan::Graph& graph, Machine machine, KnownPlans* known = nullptr, Watching watching = {},
            const Asked& asked = {});

  const plan::Graph& graph() const { return graph_; }
  SearchWatch& watch() const { return watch_; }

  Result<Evaluation> estimate(const distribute::Distribution& distribution);
  // What these take at least (least_of_plan.h), without simulating them: of those that were, what they take;
  // of those that cannot be planned, infinitely much. Both this and the next use all processors.
  std::vector<Least> least_of_all(std::span<const distribute::Distribution> distributions);
  // Whether another was seen first that leads to the same plan.
  bool is_repeated(const distribute::Distribution& distribution) const {
    return same_as_.contains(distribute::print(distribution));
  }
  // Makes these known, but for those that take `bar` seconds or more by what their longer version took and
  // what each further layer takes at least.
  void estimate_all(std::span<const distribute::Distribution* const> distributions,
                    double bar = std::numeric_limits<double>::infinity());
  Result<PredictedPlan> predict(const distribute::Distribution& distribution,
                                const sim::PredictOptions& options = {}) const;

  // With every layer, packed in memory, but all ranks alike: several at once, without their plans. Estimates
  // know nothing of the waits that come from values that take turns in memory.
  std::vector<Result<Evaluation>> refine(std::span<const distribute::Distribution> distributions) const;

  // A part of the plan by itself (chain.h). These are not counted among the estimates.
  struct PartQuestion {
    const plan::Graph* part;
    distribute::Distribution distribution;
  };
  std::vector<Result<Evaluation>> estimate_parts(std::span<const PartQuestion> questions) const;

  bool knows(const distribute::Distribution& distribution) const {
    return known_.contains(plainest(distribute::print(distribution)));
  }
  std::int64_t estimates() const { return static_cast<std::int64_t>(known_.size()); }
  std::int64_t failures() const;  // of the estimates: what could not be planned
  std::int64_t ruled_out() const { return static_cast<std::int64_t>(least_.size()); }
  // Layers of the plan that an estimate stands for, and those it looks at; both 0 when it looks at all.
  std::int64_t layers() const { return layers_; }
  std::int64_t folded_layers() const { return longer_ ? kLonger : 0; }
  // Which part of the plan an estimate simulates, both versions together; 1: all of it, once.
  double looked_at() const {
    return longer_ ? static_cast<double>(kShorter + kLonger) / static_cast<double>(layers_) : 1;
  }

 private:
  static constexpr std::int64_t kShorter = 4, kLonger = 5;
  // Both versions are simulated in place of the whole plan: of fewer layers that would be more work, not less.
  static constexpr std::int64_t kFewestFolded = kShorter + kLonger;

  // What is the same for all distributions of a plan.
  struct Shared {
    distribute::Signatures signatures;
    distribute::Openings openings;

    explicit Shared(const plan::Graph& graph) : signatures(graph), openings(graph) {}
  };
  // A plan on its mesh, ready to be simulated.
  struct Spread {
    distribute::DistributedPlan plan;
    cost::StepCosts costs;
  };
  // What distributing alone tells of a distribution, of the longer version where there is one.
  struct Glance {
    Spread spread;
    Digest plan;
    Least least;
    double further_seconds = 0;  // of it, those of the layers that the longer version lacks
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
  std::optional<plan::Graph> shorter_, longer_;  // both are used where the longer one is there
  using Names = std::set<std::string, std::less<>>;
  mutable std::once_flag named_;
  mutable Names names_, shorter_names_;                    // of tensors, once asked for
  mutable std::optional<Shared> shared_, shorter_shared_;  // of what is spread
  KnownPlans* known_plans_;
  // By the distribution's text, of the first of those that lead to one plan.
  std::map<std::string, Result<Evaluation>, std::less<>> known_;
  std::map<std::string, Least, std::less<>> least_;             // of those that were not simulated
  std::map<std::string, double, std::less<>> further_seconds_;  // of all that were glanced at
  std::map<std::string, Spread, std::less<>> spreads_;          // of some of them, the latest
  std::map<std::string, std::string, std::less<>> same_as_;     // others by the first
  std::map<Digest, std::string> first_with_;                    // by plan
  mutable SearchWatch watch_;
  // By structure and mesh.
  mutable std::mutex mutex_;
  mutable std::map<Digest, Evaluation> plans_;
};

}  // namespace weft::search
