// weft/runtime/run/local_ranks_run.h -- trains a distributed plan on the ranks of this machine.
//
//   plan, layouts ──▶ each rank: localize, compile, fill its shares ──▶ feed its share, step, ... ──▶ gather
//                                                                       rank 0 checks the loss and reports
//
// Batches, initial values and results are those of the whole model: the number of ranks affects
// only rounding. The same plan on the same number of ranks is bit-identical in every run.
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
#include "weft/program/tasks/program.h"
#include "weft/program/tasks/reference_ops.h"
#include "weft/program/tasks/timeline.h"
#include "weft/runtime/run/feed.h"
#include "weft/runtime/run/local_ranks.h"
#include "weft/runtime/run/step_times.h"
#include "weft/runtime/run/training.h"
#include "weft/runtime/run/weights.h"

namespace weft::run {

struct DistributedRun {
  // All functions are called on rank 0 only, which informs the other ranks. Exception:
  // `interrupted` and `terminated` are polled on every rank of a launcher, and all ranks stop after
  // the same step.
  TrainingRun training;

  // The model's sizes, stored with the weights; empty: as before.
  std::vector<std::pair<std::string, std::int64_t>> sizes = {};
  std::string plan = {}, launch = {};  // also stored with the weights

  // Checkpoints: after steps selected by `is_due` (counted from the model's first step), the
  // weights are gathered on rank 0 and passed to `on_weights`. An error ends the run.
  std::function<bool(std::int64_t step)> is_due = {};
  std::function<Status(std::int64_t step, const Weights& weights)> on_weights = {};

  // Number of steps between checks that replicas are equal, by a sample; 0: none.
  std::int64_t check_every = 0;

  // Called before the error is returned if a rank failed.
  std::function<void()> on_death = {};

  // Number of steps between in-memory copies of each rank's tensors; 0: none. If ranks of this
  // machine fail and the surviving ranks have copies of everything, `on_rescue` receives them,
  // before on_death.
  std::int64_t keep_every = 0;
  std::function<void(Weights weights)> on_rescue = {};

  // Number of steps between measurements of rank speeds; 0: none. `on_speeds` is called on rank 0
  // after `step`; returning true ends the run there on all ranks, to continue with another plan.
  std::int64_t look_every = 0;
  std::function<bool(std::int64_t step, const RankSpeeds& speeds)> on_speeds = {};

  // Records timelines of the run's steps from this one on; empty: of no step.
  std::optional<std::int64_t> measure_from = {};
};

struct DistributedOutcome {
  TrainingOutcome training;
  bool changes_plan = false;  // ended early because on_speeds returned true
  Weights weights;            // after the last step, whose number is in `step`
  // timelines[rank][step]: when each task of that rank's program ran, relative to the start of the
  // step on rank 0.
  std::vector<std::vector<program::Timeline>> timelines;

  std::int32_t rank = 0;                             // of this process; rank 0 reports
  std::vector<program::ReferenceOps> by_definition;  // on rank 0: operators without a kernel
  std::int64_t bytes = 0;                            // memory of rank 0
};

// `start` holds the existing weights; without tensors, initial values are drawn from its seed. If a
// rank fails, the others stop, and the error names the rank and the step. REQUIRES: the plan's
// first output is the loss, replicated.
Result<DistributedOutcome> run_distributed(const distribute::DistributedPlan& plan,
                                           const LocalRanksOptions& options, const Feed& feed,
                                           const Weights& start, const DistributedRun& run);

// The program of one rank.
Result<program::Program> compile_for_rank(const distribute::DistributedPlan& plan, std::int32_t rank,
                                          const LocalRanksOptions& options);

}  // namespace weft::run
