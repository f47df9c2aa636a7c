// weft/device/cpu/recurrence.h -- running sums with a decay, in f32.
//
//   y[row, t, i] = decay * y[row, t - 1, i] + x[row, t, i]       t = 0 .. steps-1, or back from the last
//
// x and y are rows of `steps` times `inner` floats. The decay may vary with all of these places or with some:
// it has a stride for the steps, and lies for `run` of the inner places after the other beside them, or is one
// number for all of these.
#pragma once
#include <cstdint>
#include <vector>

namespace weft::device::cpu {

struct Recurrence {
  std::int64_t steps = 1, inner = 1;
  std::int64_t run = 1;  // inner places in a row that a decay serves
  bool dense = false;    // it has a number for each of them
  bool reverse = false;
  std::int64_t step_stride = 0;                // of the decay, from step to step
  std::vector<std::int64_t> row_starts = {0};  // where the decays of each row begin
  std::vector<std::int64_t> run_starts = {0};  // and, from there, those of each run
};

// Rows begin to end.
void recur(const Recurrence& shape, std::int64_t begin, std::int64_t end, const float* decay, const float* x,
           float* y);

}  // namespace weft::device::cpu
