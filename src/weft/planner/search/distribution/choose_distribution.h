// weft/planner/search/distribution/choose_distribution.h -- choose the best distribution, with alternatives.
//
//   WEFT_TRY(choice, choose_distribution(graph, cluster, machine, {.memory_bytes = 80e9}));
//   print(choice.distribution)              node=4: slice b, shard optimizer; gpu=8: slice h, f, v, s
//   choice.chosen.prediction.seconds        0.87
//   choice.alternatives[0]                  data parallel: does not fit: 2.6 TiB per rank, ..
//
// The strategy's best distribution on each of a few meshes is refined with all layers and packed
// memory, and the best of those is chosen.
#pragma once
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "weft/base/result.h"
#include "weft/plan/cluster/cluster.h"
#include "weft/planner/search/distribution/distribution_search.h"

namespace weft::search {

// The smallest plan found, if none fits.
struct TooLarge {
  double bytes = 0, limit = 0;    // per rank
  bool grows_with_batch = false;  // most of the memory does
};

struct ChooseOptions {
  double memory_bytes = 0;  // limit per rank; 0: no limit
  FixedPart fixed;
  Asked asked;                                     // by settings; plans must support them
  DistributionBudget budget;                       // its memory_bytes is set from the one above
  const DistributionStrategy* strategy = nullptr;  // null: by_parts
  // Written by the user: predicted as it is, without a search.
  std::optional<distribute::Distribution> given;
  bool alternatives = true;
  int devices_per_rank = 1;     // processors of this machine per local rank
  KnownPlans* known = nullptr;  // cache of choices and estimates; null: none
  // Progress and interruption; its seconds are those of the budget. The best found so far is then
  // chosen.
  Watching watching = {};
  // Also ends the search, if that is earlier.
  std::chrono::steady_clock::time_point until = std::chrono::steady_clock::time_point::max();
  // Advice for the error if no plan fits. Called once, and not if the search ended early.
  std::function<std::string(const TooLarge&)> advise = {};
};

struct Alternative {
  std::string name;  // "data parallel", "Megatron", "ZeRO-3"
  distribute::Distribution distribution;
  Evaluation evaluation;
  bool fits = false;
  std::string why_not;  // "1.8x slower: 41 ms more exposed communication"
  // By estimate only: the later planner stages were not run.
  bool estimated = true;
};

// Everything but the plan itself.
struct ChosenDistribution {
  distribute::Distribution distribution;
  bool fits = false;
  std::vector<Alternative> alternatives;
  double lower_bound_seconds = 0;  // for any plan on this cluster
  std::string lower_bound_why;
  double search_seconds = 0;
  SearchOutcome outcome;                // trail, counts, why it ended
  std::int64_t layers = 0, folded = 0;  // estimates use `folded` of `layers`; 0: all
  bool from_plan_cache = false;         // reuses an earlier search
};

struct DistributionChoice : ChosenDistribution {
  PredictedPlan chosen;
};

// Fails if a hint cannot be satisfied, if nothing was evaluated before the search ended, or if no
// plan fits; then reports the smallest memory found and what would make it fit.
Result<DistributionChoice> choose_distribution(const plan::Graph& graph, const cluster::Cluster& cluster,
                                               const Machine& machine, const ChooseOptions& options = {});

// The families that EXPLAIN shows beside a choice: the best member of each, estimated.
Result<std::vector<Alternative>> estimate_families(const plan::Graph& graph, const cluster::Cluster& cluster,
                                                   const Machine& machine, const ChooseOptions& options = {});
// The same, preceded by the best plan of a search, "without stages", if one fits.
Result<std::vector<Alternative>> estimate_best(const plan::Graph& graph, const cluster::Cluster& cluster,
                                               const Machine& machine, const ChooseOptions& options = {});
// Why the plan with evaluation `chosen` was preferred.
std::string why_not_chosen(const Alternative& other, const Evaluation& chosen, double limit);
// The same if only the time of the chosen plan is known.
std::string why_slower(const Alternative& other, double seconds, double limit);

}  // namespace weft::search
