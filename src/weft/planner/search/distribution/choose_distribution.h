// weft/planner/search/distribution/choose_distribution.h -- how a model is best spread over a cluster, and why not otherwise.
//
//   WEFT_TRY(choice, choose_distribution(graph, cluster, machine, {.memory_bytes = 80e9}));
//   print(choice.distribution)              node=4: slice b, shard optimizer; gpu=8: slice h, f, v, s
//   choice.chosen.prediction.seconds        0.87
//   choice.alternatives[0]                  data parallel: needs 2.6 TiB a rank, 80 GiB are there
//
// Of what the strategy found, the best of each of a few meshes are packed in memory with every layer, and the
// best of those is taken.
#pragma once
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "weft/base/result.h"
#include "weft/plan/cluster/cluster.h"
#include "weft/planner/search/distribution/distribution_search.h"

namespace weft::search {

// The smallest plan that was found, where none fits.
struct TooLarge {
  double bytes = 0, limit = 0;    // a rank
  bool grows_with_batch = false;  // most of it does
};

struct ChooseOptions {
  double memory_bytes = 0;  // that a rank may take; 0: no limit
  FixedPart fixed;
  Asked asked;                                     // by settings: plans that cannot keep it are not looked at
  DistributionBudget budget;                       // its memory_bytes is the one above
  const DistributionStrategy* strategy = nullptr;  // null: by_parts
  // Priced as it is, without a search: what a user wrote by hand.
  std::optional<distribute::Distribution> given;
  bool alternatives = true;
  int devices_a_rank = 1;       // processors of this machine that a local rank has
  KnownPlans* known = nullptr;  // where choices and estimates are kept; null: nowhere
  // Who looks on and may end it; its seconds are the budget's. What was found till then is chosen from.
  Watching watching = {};
  // Likewise when it ends, where that is earlier.
  std::chrono::steady_clock::time_point until = std::chrono::steady_clock::time_point::max();
  // What the error says to do where no plan fits; asked for once, and not where the search was ended early.
  std::function<std::string(const TooLarge&)> advise = {};
};

struct Alternative {
  std::string name;  // "data parallel", "Megatron", "ZeRO-3"
  distribute::Distribution distribution;
  Evaluation evaluation;
  bool fits = false;
  std::string why_not;  // "1.8x slower: 41 ms more exposed communication"
  // Of the plan as it is distributed: it was not carried through the stages that follow.
  bool estimated = true;
};

// All but the plan itself.
struct ChosenDistribution {
  distribute::Distribution distribution;
  bool fits = false;
  std::vector<Alternative> alternatives;
  double lower_bound_seconds = 0;  // no plan of this cluster takes less, whatever it moves
  std::string lower_bound_why;
  double search_seconds = 0;
  SearchOutcome outcome;                // trail, counts, why it stopped
  std::int64_t layers = 0, folded = 0;  // estimates looked at `folded` of `layers`; 0: at all
  bool from_plan_cache = false;         // the search was an earlier one's
};

struct DistributionChoice : ChosenDistribution {
  PredictedPlan chosen;
};

// Fails where a hint cannot be kept, nothing could be evaluated before it ended, or no plan fits: then with the smallest
// memory that was found and what would make it fit.
Result<DistributionChoice> choose_distribution(const plan::Graph& graph, const cluster::Cluster& cluster,
                                               const Machine& machine, const ChooseOptions& options = {});

// The families that EXPLAIN sets beside a choice, the best member of each, estimated.
Result<std::vector<Alternative>> estimate_families(const plan::Graph& graph, const cluster::Cluster& cluster,
                                                   const Machine& machine, const ChooseOptions& options = {});
// The same, and before them the best that the search finds, "without stages", where one fits.
Result<std::vector<Alternative>> estimate_best(const plan::Graph& graph, const cluster::Cluster& cluster,
                                               const Machine& machine, const ChooseOptions& options = {});
// Why another was chosen in its place, whose evaluation this is.
std::string why_not_chosen(const Alternative& other, const Evaluation& chosen, double limit);
// What speaks against one of them beside a plan of which no more is known than what it takes.
std::string why_slower(const Alternative& other, double seconds, double limit);

}  // namespace weft::search
