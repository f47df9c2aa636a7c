// weft/runtime/run/training.h -- the loop: feed, step, look at the loss.
//
// A loss that is no number any more ends it. The steps since the last copy of the rank's memory are
// then run again, task by task, which finds the very value that first was not finite: the same
// contents give the same bits, so it happens again. Of a large model no copy is made: it
// would be memory that nobody was told of.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "weft/base/result.h"
#include "weft/runtime/exec/rank.h"
#include "weft/runtime/run/feed.h"
#include "weft/runtime/run/schedule.h"

namespace weft::run {

struct StepReport {
  std::int64_t step = 0;  // steps done, counted from the model's first
  double loss = 0;
  double seconds = 0;                       // since the run began
  std::vector<double> further_losses = {};  // where the plan has several
};

struct TrainingRun {
  std::int64_t first_step = 0;  // steps taken in earlier runs
  std::int64_t steps = 0;       // to take now
  std::size_t losses = 1;       // so many of the plan's first outputs
  Schedule schedule = {};       // of the learning rate
  // Asked before each step; true ends the run there.
  std::function<bool()> interrupted = {}, terminated = {};
  std::optional<std::chrono::steady_clock::time_point> until =
      {};  // it ends before the first step after this
  // After each step; an error ends the run. Called often: whoever listens picks what to show.
  std::function<Status(const StepReport&)> on_step = {};
};

struct TrainingOutcome {
  std::int64_t steps_done = 0;
  double first_loss = 0, last_loss = 0;
  std::vector<double> first_further, last_further = {};  // of the other losses
  double seconds = 0;
  // Why it ended before its last step; none: it did not.
  bool interrupted = false, terminated = false, time_up = false;
  std::int32_t ended_by = 0;  // the rank that was terminated
};

// REQUIRES: the rank's parameters and states are filled, and the plan's first output is the loss.
Result<TrainingOutcome> run_training(exec::Rank& rank, const Feed& feed, const TrainingRun& run);

// Of a rank that has done a step: what its second to `losses`-th outputs are.
Result<std::vector<double>> further_losses(const exec::Rank& rank, std::size_t losses);

// By what a plan multiplies its loss, after a step; none where it does not. Fails where it has collapsed: every
// step overflows, however small it is. While it is there, a loss that is not finite is a step that was skipped.
Result<std::optional<double>> loss_scale_after(const exec::Rank& rank, std::int64_t step);

// "training diverged: the loss is nan at step 2", of a loss that is not finite after `step` steps.
std::string print_divergence(double loss, std::int64_t step);

}  // namespace weft::run
