// weft/planner/step/kept_plan.h -- the plan stored with trained weights.
//
//   TRAIN m ON LOCAL 2 ..  ──▶  weights: plan, mesh, algorithms, threads, settings and hints
//   LOAD, TRAIN m ON LOCAL 2 .. ──▶ the same plan, whatever was measured since: bitwise equal results
//
// A TRAIN with other settings (ranks, batch, distribution) is planned again, with a warning if the
// weights come from a file. In a launcher's job, all ranks run the plan of rank 0.
#pragma once
#include <cstdint>
#include <string>

#include "weft/base/result.h"
#include "weft/planner/search/optimize.h"
#include "weft/planner/statement/prepare.h"
#include "weft/runtime/run/local_ranks.h"

namespace weft::planner {

struct PlanToTrain {
  search::Choice choice;
  run::LocalRanksOptions options;  // with several ranks
  std::string kept;                // to store with the weights; in a launcher's job, that of rank 0
};

// `kept`: the plan stored with the weights; empty: none. If it is not used and `tells` is set, a
// warning says why. Collective under a launcher with several ranks.
Result<PlanToTrain> plan_to_train(const Knowledge& state, const Observer& context, const Prepared& prepared,
                                  const std::string& kept, bool tells);

// Prepares a plan from another source for training.
Result<PlanToTrain> to_train(const Knowledge& state, const Prepared& prepared, search::Choice choice);

}  // namespace weft::planner
