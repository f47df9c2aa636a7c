// weft/runtime/run/training.h -- the training loop: feed, step, check the loss.
//
// A NaN or infinite loss ends it. The steps since the last copy of the rank's memory are then
// repeated, task by task, to find the first value that was not finite: the same contents give the
// same bits, so it occurs again. Large models are not copied, because the copy is not included in
// the reported memory.
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
  std::int64_t step = 0;  // steps completed, counted from the model's first
  double loss = 0;
  double seconds = 0;                       // since the start of the run
  std::vector<double> further_losses = {};  // if the plan has several losses
};

struct TrainingRun {
  std::int64_t first_step = 0;  // steps completed in earlier runs
  std::int64_t steps = 0;       // steps to run
  std::size_t losses = 1;       // number of losses, which are the plan's first outputs
  Schedule schedule = {};       // of the learning rate
  // Polled before each step; true ends the run there.
  std::function<bool()> interrupted = {}, terminated = {};
  std::optional<std::chrono::steady_clock::time_point> until = {};  // no step starts after this time
  // Called after every step; an error ends the run.
  std::function<Status(const StepReport&)> on_step = {};
};

struct TrainingOutcome {
  std::int64_t steps_done = 0;
  double first_loss = 0, last_loss = 0;
  std::vector<double> first_further, last_further = {};  // of the losses after the first
  double seconds = 0;
  // Why it ended before its last step; all false: it did not.
  bool interrupted = false, terminated = false, time_up = false;
  std::int32_t ended_by = 0;  // the rank that received SIGTERM
};

// REQUIRES: the rank's parameters and states are filled, and the plan's first output is the loss.
Result<TrainingOutcome> run_training(exec::Rank& rank, const Feed& feed, const TrainingRun& run);

// After a step: the second to `losses`-th outputs.
Result<std::vector<double>> further_losses(const exec::Rank& rank, std::size_t losses);

// The plan's loss scale after a step; empty if it has none. Fails if the scale has collapsed: every
// step overflows, however small the scale. If there is a scale, a non-finite loss is a skipped
// step.
Result<std::optional<double>> loss_scale_after(const exec::Rank& rank, std::int64_t step);

// "training diverged: the loss is nan at step 2".
std::string print_divergence(double loss, std::int64_t step);

}  // namespace weft::run
