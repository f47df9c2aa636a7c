// weft/translate/runs/measured_step.h -- a measured training step, as a user states it or as a trainer's log has it.
//
//   step=1.31s, memory=61GiB
//   tokens_per_second_per_gpu=5432
//
//   elapsed time per iteration (ms): 1310.2                     Megatron-LM, with its memory (MB) lines
//   step: 10  loss: 8.1  memory: 47.51GiB(59.98%)  tps: 5,432   torchtitan
//   CurrSamplesPerSec=12.5, MemAllocated=4.3GB, MaxMemAllocated=12.1GB      DeepSpeed
//   elapsed_time_per_iteration_ms: 1.31K | tokens_per_sec_per_gpu: 13.6K    Nanotron
//
// Of a log, the time is the median without the first steps, which compile and allocate, and the memory is the most.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "weft/base/result.h"

namespace weft::runs {

struct MeasuredStep {
  // One of these, or none: by the clock, per GPU, of the whole batch.
  double seconds = 0, tokens_per_second_per_gpu = 0, examples_per_second = 0;
  double peak_bytes = 0;   // by the allocator, of one device; 0: not measured
  std::string trainer;     // whose log it is; empty: stated
  std::int64_t steps = 0;  // of the log, that count

  // The time of a step. Fails if tokens or examples per second were measured and the step's are not known.
  Result<double> step_seconds(std::int64_t global_batch, std::int64_t sequence, std::int64_t devices) const;
};

// "step=1.31s, memory=61GiB". At least one value is needed; all must be positive.
Result<MeasuredStep> read_stated_step(std::string_view text);

// The log of a trainer; `path` is for errors.
Result<MeasuredStep> read_trainer_log(std::string_view text, std::string_view path);

}  // namespace weft::runs
