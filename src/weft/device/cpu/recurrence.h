// weft/device/cpu/recurrence.h -- running sums with decay, in f32.
//
//   y[row, t, i] = decay * y[row, t - 1, i] + x[row, t, i]       t = 0 .. steps-1, or reversed
//
// x and y are rows of `steps` times `inner` floats. The decay may vary along all or some of these
// indices. It has a stride along the steps. For each run of `run` inner elements it is contiguous
// (`dense`) or a single number.
#pragma once
#include <cstdint>
#include <vector>

namespace weft::device::cpu {

struct Recurrence {
  std::int64_t steps = 1, inner = 1;
  std::int64_t run = 1;  // inner elements per run of the decay
  bool dense = false;    // the decay has one number per element of a run
  bool reverse = false;
  std::int64_t step_stride = 0;                // stride of the decay along the steps
  std::vector<std::int64_t> row_starts = {0};  // offset of each row's decays
  std::vector<std::int64_t> run_starts = {0};  // offset of each run's decays within a row
};

// Works on rows [begin, end).
void recur(const Recurrence& shape, std::int64_t begin, std::int64_t end, const float* decay, const float* x,
           float* y);

}  // namespace weft::device::cpu
