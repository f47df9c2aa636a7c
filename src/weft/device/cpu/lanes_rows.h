// weft/device/cpu/lanes_rows.h -- reductions and row functions. Each pass reads data that the
// previous one left in L1, so the passes are kept simple.
#pragma once
#include <cmath>
#include <cstdint>

#include "weft/device/cpu/lanes_loops.h"
#include "weft/device/cpu/lanes_map.h"
#include "weft/device/cpu/lanes_math.h"
#include "weft/device/cpu/lanes_pointwise.h"

namespace weft::device::cpu::WEFT_LANES {

inline constexpr auto kPlus = [](Vector a, Vector b) { return a + b; };
inline constexpr auto kLarger = [](Vector a, Vector b) { return lane::maximum(a, b); };
inline constexpr auto kSmaller = [](Vector a, Vector b) { return lane::minimum(a, b); };

// This many elements are summed in f32. Longer arrays are summed in double, to keep the last bits.
inline constexpr std::int64_t kStretch = 4096;

template <class Element>
float sum_of(std::int64_t n, Element element) {
  if (n <= kStretch) return fold(n, 0, kPlus, element);
  double total = 0;
  for (std::int64_t first = 0; first < n; first += kStretch)
    total += static_cast<double>(fold(n - first < kStretch ? n - first : kStretch, 0, kPlus,
                                      [=](std::int64_t i, auto lanes) { return element(first + i, lanes); }));
  return static_cast<float>(total);
}

[[gnu::flatten]] inline float sum(const float* x, std::int64_t n) {
  return sum_of(n, [=](std::int64_t i, auto lanes) { return load(x + i, lanes, 0); });
}

[[gnu::flatten]] inline float max(const float* x, std::int64_t n) {
  return fold(n, -kInfinity, kLarger,
              [=](std::int64_t i, auto lanes) { return load(x + i, lanes, -kInfinity); });
}

[[gnu::flatten]] inline float min(const float* x, std::int64_t n) {
  return fold(n, kInfinity, kSmaller,
              [=](std::int64_t i, auto lanes) { return load(x + i, lanes, kInfinity); });
}

[[gnu::flatten]] inline float dot(const float* a, const float* b, std::int64_t n) {
  return sum_of(n, [=](std::int64_t i, auto lanes) { return load(a + i, lanes, 0) * load(b + i, lanes, 0); });
}

[[gnu::flatten]] inline void accumulate(const float* x, float* y, std::int64_t n) {
  each(n, [=](std::int64_t i, auto lanes) {
    store(y + i, load(y + i, lanes, 0) + load(x + i, lanes, 0), lanes);
  });
}

[[gnu::flatten]] inline void accumulate_product(const float* a, const float* b, float* y, std::int64_t n) {
  each(n, [=](std::int64_t i, auto lanes) {
    store(y + i, load(y + i, lanes, 0) + load(a + i, lanes, 0) * load(b + i, lanes, 0), lanes);
  });
}

[[gnu::flatten]] inline void scale(const float* x, float factor, float* y, std::int64_t n) {
  each(n, [=](std::int64_t i, auto lanes) { store(y + i, load(x + i, lanes, 0) * factor, lanes); });
}

inline Vector exponential_above(Vector x, Vector zero) { return exponential(x - zero); }

[[gnu::flatten]] inline void softmax(const float* x, float* y, std::int64_t n) {
  const float largest = max(x, n);
  if (largest == -kInfinity) {  // no weights; -inf minus -inf would be NaN
    each(n, [=](std::int64_t i, auto lanes) { store(y + i, Vector{}, lanes); });
    return;
  }
  map<exponential_above>(n, y, Varying{x}, Uniform{largest});
  scale(y, 1 / sum(y, n), y, n);
}

[[gnu::flatten]] inline float log_sum_exp(const float* x, std::int64_t n, float& largest_of_row) {
  const float largest = largest_of_row = max(x, n);
  if (largest == -kInfinity) return largest;
  return largest + std::log(sum_of(n, [=](std::int64_t i, auto lanes) {
           return exponential(load(x + i, lanes, -kInfinity) - largest);
         }));
}

[[gnu::flatten]] inline float exponentials(const float* x, float shift, float* y, std::int64_t n) {
  return sum_of(n, [=](std::int64_t i, auto lanes) {
    const Vector power = exponential(load(x + i, lanes, -kInfinity) - shift);
    store(y + i, power, lanes);
    return power;
  });
}

[[gnu::flatten]] inline void softmax_slope(const float* p, const float* dp, float along, float factor,
                                           float* ds, std::int64_t n) {
  each(n, [=](std::int64_t i, auto lanes) {
    store(ds + i, load(p + i, lanes, 0) * (load(dp + i, lanes, 0) - along) * factor, lanes);
  });
}

[[gnu::flatten]] inline void layer_norm(const float* x, float* y, std::int64_t n, float epsilon,
                                        float& rstd_of_row) {
  const float count = static_cast<float>(n), mean = sum(x, n) / count;
  const float squares = sum_of(n, [=](std::int64_t i, auto lanes) {
    const Vector centered = load(x + i, lanes, mean) - mean;
    return centered * centered;
  });
  const float rstd = rstd_of_row = 1 / std::sqrt(squares / count + epsilon);
  each(n, [=](std::int64_t i, auto lanes) { store(y + i, (load(x + i, lanes, 0) - mean) * rstd, lanes); });
}

[[gnu::flatten]] inline void rms_norm(const float* x, float* y, std::int64_t n, float epsilon,
                                      float& rstd_of_row) {
  rstd_of_row = 1 / std::sqrt(dot(x, x, n) / static_cast<float>(n) + epsilon);
  scale(x, rstd_of_row, y, n);
}

}  // namespace weft::device::cpu::WEFT_LANES
