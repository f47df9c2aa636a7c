#include "weft/device/cpu/recurrence.h"

#include <algorithm>
#include <array>

namespace weft::device::cpu {
namespace {

// Sums are carried in double: a long running sum in float would lose the low bits of each addend.

constexpr std::int64_t kBlock = 256;  // elements advanced together, with their sums in cache

// Runs `count` adjacent elements through all steps. They are independent, so the loop vectorizes.
template <bool kDense>
void step_block(const Recurrence& shape, std::int64_t count, const float* decay, const float* x, float* y) {
  std::array<double, kBlock> last;
  std::fill_n(last.begin(), count, 0.0);
  for (std::int64_t step = 0; step < shape.steps; ++step) {
    const std::int64_t t = shape.reverse ? shape.steps - 1 - step : step;
    const float *factors = decay + t * shape.step_stride, *from = x + t * shape.inner;
    float* to = y + t * shape.inner;
    const double factor = *factors;
    for (std::int64_t i = 0; i < count; ++i) {
      const auto at = static_cast<std::size_t>(i);
      last[at] = (kDense ? factors[i] : factor) * last[at] + from[i];
      to[i] = static_cast<float>(last[at]);
    }
  }
}

// Rows with contiguous steps. Each step depends on the one before, so several rows are interleaved.
template <std::size_t kRows>
void step_lines(const Recurrence& shape, std::int64_t row, const float* decay, const float* x, float* y) {
  std::array<const float*, kRows> decays{}, from{};
  std::array<float*, kRows> to{};
  std::array<double, kRows> last{};
  for (std::size_t r = 0; r < kRows; ++r) {
    const auto at = row + static_cast<std::int64_t>(r);
    decays[r] = decay + shape.row_starts[static_cast<std::size_t>(at)];
    from[r] = x + at * shape.steps;
    to[r] = y + at * shape.steps;
  }
  for (std::int64_t step = 0; step < shape.steps; ++step) {
    const std::int64_t t = shape.reverse ? shape.steps - 1 - step : step;
    for (std::size_t r = 0; r < kRows; ++r) {
      last[r] = decays[r][t * shape.step_stride] * last[r] + from[r][t];
      to[r][t] = static_cast<float>(last[r]);
    }
  }
}

}  // namespace

void recur(const Recurrence& shape, std::int64_t begin, std::int64_t end, const float* decay, const float* x,
           float* y) {
  constexpr std::int64_t kTogether = 8;
  std::int64_t row = begin;
  if (shape.inner == 1) {
    for (; row + kTogether <= end; row += kTogether) step_lines<kTogether>(shape, row, decay, x, y);
    for (; row < end; ++row) step_lines<1>(shape, row, decay, x, y);
  }
  for (; row < end; ++row) {
    std::int64_t at = row * shape.steps * shape.inner;
    const float* decays = decay + shape.row_starts[static_cast<std::size_t>(row)];
    for (const std::int64_t start : shape.run_starts) {
      for (std::int64_t done = 0; done < shape.run; done += kBlock) {
        const std::int64_t count = std::min(kBlock, shape.run - done);
        if (shape.dense)
          step_block<true>(shape, count, decays + start + done, x + at + done, y + at + done);
        else
          step_block<false>(shape, count, decays + start, x + at + done, y + at + done);
      }
      at += shape.run;
    }
  }
}

}  // namespace weft::device::cpu
