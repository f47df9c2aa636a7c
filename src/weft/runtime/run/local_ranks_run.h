// weft/runtime/run/local_ranks_run.h -- a distributed plan trained on the ranks of this machine.
//
//   plan, layouts ──▶ each rank: localize, compile, fill its shares ──▶ feed its share, step, ... ──▶ gather
//                                                                       rank 0 looks at the loss and reports
//
// The batches, the initial values and what is learned are those of the whole model: how many ranks there are
// does not show but in rounding. The same plan on as many ranks gives the same bits on every run.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "weft/base/result.h"
#include "weft/parallel/distribute/distribute.h"
#include "weft/program/tasks/by_definition.h"
#include "weft/program/tasks/program.h"
#include "weft/program/tasks/timeline.h"
#include "weft/runtime/run/feed.h"
#include "weft/runtime/run/local_ranks.h"
#include "weft/runtime/run/step_times.h"
#include "weft/runtime/run/training.h"
#include "weft/runtime/run/weights.h"

namespace weft::run {

struct DistributedRun {
  // All functions are called on rank 0 alone, which tells the others; but each rank of a launcher is asked
  // whether it was interrupted or terminated, and where one was all stop after the same step.
  TrainingRun training;

  // The model's sizes in this run, for what is learned to remember; none: those that it had before.
  std::vector<std::pair<std::string, std::int64_t>> sizes = {};
  std::string plan = {}, launch = {};  // for it to remember as well

  // What is learned, gathered on rank 0: after steps that `is_due` names (by the number of steps done since
  // the model's first), given to `on_weights`. An error ends the run.
  std::function<bool(std::int64_t step)> is_due = {};
  std::function<Status(std::int64_t step, const Weights& weights)> on_weights = {};

  // Steps from one comparison of what ranks hold alike to the next, by a sample; 0: none.
  std::int64_t check_every = 0;

  // Called before the error is returned where a rank died.
  std::function<void()> on_death = {};

  // Steps from one copy that each rank keeps of its part, in memory of its own, to the next; 0: none. Where ranks
  // of this machine died and those that are left hold a copy of everything, `on_rescue` has it, before on_death.
  std::int64_t keep_every = 0;
  std::function<void(Weights weights)> on_rescue = {};

  // Steps from one look at how quick the ranks are to the next; 0: none. `on_speeds` hears it on rank 0, after
  // step `step`; true ends the run there on all ranks, for another plan.
  std::int64_t look_every = 0;
  std::function<bool(std::int64_t step, const RankSpeeds& speeds)> on_speeds = {};

  // Timelines are kept of the steps of this run from here on; none: of none.
  std::optional<std::int64_t> measure_from = {};
};

struct DistributedOutcome {
  TrainingOutcome training;
  bool changes_plan = false;  // it ended early, as on_speeds wanted
  Weights weights;            // after the last step; `step` says which
  // timelines[rank][step]: when each task of that rank's program ran, counted from when rank 0
  // began the step.
  std::vector<std::vector<program::Timeline>> timelines;

  std::int32_t rank = 0;                             // of this process: rank 0 reports
  std::vector<program::ByDefinition> by_definition;  // of rank 0: operators that have no kernel
  std::int64_t bytes = 0;                            // that rank 0 took
};

// `start` holds what was learned before; where it has no tensors, initial values are drawn from its seed.
// A rank that dies ends the others: the error says which and in what step. REQUIRES: the plan's first output
// is the loss, replicated.
Result<DistributedOutcome> run_distributed(const distribute::DistributedPlan& plan,
                                           const LocalRanksOptions& options, const Feed& feed,
                                           const Weights& start, const DistributedRun& run);

// The program of one rank.
Result<program::Program> compile_for_rank(const distribute::DistributedPlan& plan, std::int32_t rank,
                                          const LocalRanksOptions& options);

}  // namespace weft::run
