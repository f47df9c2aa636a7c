// weft/planner/step/kept_plan.h -- the plan that weights were trained with, kept with them.
//
//   TRAIN m ON LOCAL 2 ..  ──▶  weights: plan, mesh, algorithms, threads, and what was asked for
//   LOAD, TRAIN m ON LOCAL 2 .. ──▶ the same plan, whatever was measured meanwhile: the same bits
//
// A TRAIN that asks for something else (other ranks, another batch, a distribution) is planned anew, and says so
// where the weights come from a file.
// Where a launcher started ranks, what rank 0 found is what all of them run.
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
  run::LocalRanksOptions options;  // of several ranks
  std::string kept;                // for the weights to keep; of a launcher's ranks, as rank 0 has it
};

// `kept`: what the weights say; empty: nothing. Where it is not followed, a warning says why if `tells`. Collective
// where there is a launcher and several ranks.
Result<PlanToTrain> plan_to_train(const Knowledge& state, const Observer& context, const Prepared& prepared,
                                  const std::string& kept, bool tells);

// A plan that was found otherwise, ready to be trained with.
Result<PlanToTrain> to_train(const Knowledge& state, const Prepared& prepared, search::Choice choice);

}  // namespace weft::planner
