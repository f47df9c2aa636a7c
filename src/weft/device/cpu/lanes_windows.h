// weft/device/cpu/lanes_windows.h -- sliding windows over a flat line of floats.
//
//   y[p] = sum over k of w[k] * x[p + offset[k]]
//
// A plane with a border is such a line. Rows end in border columns whose results are discarded, so
// every vector is full however short the rows are.
#pragma once
#include <cstdint>

#include "weft/device/cpu/lanes_loops.h"
#include "weft/device/cpu/lanes_pointwise.h"

namespace weft::device::cpu::WEFT_LANES {

// kOuts outputs at kVectors vectors of positions, kept in registers over all elements of the
// windows.
template <int kOuts, int kVectors>
[[gnu::flatten, gnu::noinline]] void correlate_tile(const Correlation& of, std::int64_t out, std::int64_t p) {
  Vector sums[kOuts][kVectors] = {};
  for (std::int64_t c = 0; c < of.channels; ++c) {
    const float* const x = of.x + c * of.channel + p;
    const float* const w = of.w + out * of.w_out + c * of.taps;
    for (std::int64_t k = 0; k < of.taps; ++k) {
      const float* const from = x + of.offsets[k];
      Vector in[kVectors];
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) in[v] = load(from + v * kWidth, AllLanes{}, 0);
#pragma GCC unroll 4
      for (int o = 0; o < kOuts; ++o) {
        const float factor = w[o * of.w_out + k];
#pragma GCC unroll 8
        for (int v = 0; v < kVectors; ++v) sums[o][v] += in[v] * factor;
      }
    }
  }
#pragma GCC unroll 4
  for (int o = 0; o < kOuts; ++o)
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v)
      store(of.y + (out + o) * of.y_out + p + v * kWidth, sums[o][v], AllLanes{});
}

// There are 32 vector registers with avx512 and on arm, else 16.
inline constexpr int kTileVectors = kWidth == 16 ? 6 : 3;

template <int kOuts, int kVectors = kTileVectors>
void correlate_outs(const Correlation& of, std::int64_t out, std::int64_t p) {
  const std::int64_t vectors = (of.length - p + kWidth - 1) / kWidth;
  if constexpr (kVectors == kTileVectors)
    for (std::int64_t left = vectors; left >= kTileVectors; left -= kTileVectors, p += kTileVectors * kWidth)
      correlate_tile<kOuts, kTileVectors>(of, out, p);
  if (p >= of.length) return;
  if constexpr (kVectors > 1) {
    if ((of.length - p + kWidth - 1) / kWidth == kVectors - 1)
      return correlate_tile<kOuts, kVectors - 1>(of, out, p);
    correlate_outs<kOuts, kVectors - 1>(of, out, p);
  }
}

inline void correlate(const Correlation& of) {
  std::int64_t out = 0;
  for (; out + 4 <= of.outs; out += 4) correlate_outs<4>(of, out, 0);
  for (; out + 2 <= of.outs; out += 2) correlate_outs<2>(of, out, 0);
  for (; out < of.outs; ++out) correlate_outs<1>(of, out, 0);
}

// dw[k] += sum over p of dy[p] * x[p + offset[k]], for kOuts outputs and kTaps window elements.
template <int kOuts, int kTaps>
[[gnu::flatten, gnu::noinline]] void correlate_sums(const Correlation& of, const float* dy, const float* x,
                                                    const std::int64_t* offsets, float* dw) {
  Vector sums[kOuts][kTaps] = {};
  for (std::int64_t p = 0; p < of.length; p += kWidth) {
    Vector in[kOuts];
#pragma GCC unroll 2
    for (int o = 0; o < kOuts; ++o) in[o] = load(dy + o * of.y_out + p, AllLanes{}, 0);
#pragma GCC unroll 9
    for (int k = 0; k < kTaps; ++k) {
      const Vector shifted = load(x + offsets[k] + p, AllLanes{}, 0);
#pragma GCC unroll 2
      for (int o = 0; o < kOuts; ++o) sums[o][k] += in[o] * shifted;
    }
  }
  for (int o = 0; o < kOuts; ++o)
    for (int k = 0; k < kTaps; ++k)
      dw[o * of.w_out + k] += joined_lanes(sums[o][k], [](Vector a, Vector b) { return a + b; });
}

template <int kOuts, int kTaps = 9>
void correlate_taps(const Correlation& of, std::int64_t taps, const float* dy, const float* x,
                    const std::int64_t* offsets, float* dw) {
  if constexpr (kTaps > 1)
    if (taps < kTaps) return correlate_taps<kOuts, kTaps - 1>(of, taps, dy, x, offsets, dw);
  correlate_sums<kOuts, kTaps>(of, dy, x, offsets, dw);
}

inline void correlate_gradient(const Correlation& of, float* dw) {
  constexpr std::int64_t kMost = 9;
  for (std::int64_t o = 0; o < of.outs;) {
    const bool two = o + 2 <= of.outs;
    for (std::int64_t c = 0; c < of.channels; ++c)
      for (std::int64_t k = 0; k < of.taps; k += kMost) {
        const std::int64_t taps = of.taps - k < kMost ? of.taps - k : kMost;
        const float *dy = of.y + o * of.y_out, *x = of.x + c * of.channel;
        float* to = dw + o * of.w_out + c * of.taps + k;
        two ? correlate_taps<2>(of, taps, dy, x, of.offsets + k, to)
            : correlate_taps<1>(of, taps, dy, x, of.offsets + k, to);
      }
    o += two ? 2 : 1;
  }
}

// y[p] = the elements of its window, combined in order.
template <class Combine, class Finish>
void combine_windows(const Correlation& of, Combine combine, Finish finish) {
  for (std::int64_t p = 0; p < of.length; p += kWidth) {
    Vector y = load(of.x + of.offsets[0] + p, AllLanes{}, 0);
    for (std::int64_t k = 1; k < of.taps; ++k) y = combine(y, load(of.x + of.offsets[k] + p, AllLanes{}, 0));
    store(of.y + p, finish(y), AllLanes{});
  }
}
[[gnu::flatten]] inline void max_of_windows(const Correlation& of) {
  combine_windows(
      of, [](Vector a, Vector b) { return lane::maximum(a, b); }, [](Vector y) { return y; });
}
[[gnu::flatten]] inline void mean_of_windows(const Correlation& of) {
  const auto points = static_cast<float>(of.taps);
  combine_windows(
      of, [](Vector a, Vector b) { return a + b; }, [=](Vector y) { return y / points; });
}

// Adds dy to dx at the first maximum of each window. NaN elements, such as the border, are skipped.
[[gnu::flatten]] inline void scatter_to_maximum(const Correlation& of, float* dx) {
  for (std::int64_t p = 0; p < of.length; p += kWidth) {
    Vector largest = load(of.x + of.offsets[0] + p, AllLanes{}, 0), which = {};
    for (std::int64_t k = 1; k < of.taps; ++k) {
      const Vector x = load(of.x + of.offsets[k] + p, AllLanes{}, 0);
      const Mask is_larger = ~(largest >= x) & (x == x);
      largest = choose(is_larger, x, largest);
      which = choose(is_larger, splat(static_cast<float>(k)), which);
    }
    const Vector dy = load(of.y + p, AllLanes{}, 0);
    for (std::int64_t k = 0; k < of.taps; ++k) {
      float* const to = dx + of.offsets[k] + p;
      store(to, load(to, AllLanes{}, 0) + choose(which == static_cast<float>(k), dy, Vector{}), AllLanes{});
    }
  }
}

// The elements of two vectors at even positions, and at odd ones.
template <std::size_t... kLane>
Vector every_second(Vector a, Vector b, std::index_sequence<kLane...>) {
  return __builtin_shufflevector(a, b, static_cast<int>(2 * kLane)...);
}
template <std::size_t... kLane>
Vector every_other(Vector a, Vector b, std::index_sequence<kLane...>) {
  return __builtin_shufflevector(a, b, static_cast<int>(2 * kLane + 1)...);
}

// Copies rows of a plane to rows `to_step` apart.
[[gnu::flatten]] inline void copy_rows(std::int64_t rows, std::int64_t width, const float* from,
                                       std::int64_t from_step, float* to, std::int64_t to_step) {
  for (std::int64_t row = 0; row < rows; ++row, from += from_step, to += to_step)
    each(width, [=](std::int64_t i, auto lanes) { store(to + i, load(from + i, lanes, 0), lanes); });
}

// The same, split into the even and the odd elements of each row.
[[gnu::flatten]] inline void split_rows(std::int64_t rows, std::int64_t width, const float* from,
                                        std::int64_t from_step, float* even, float* odd,
                                        std::int64_t to_step) {
  constexpr auto kAll = std::make_index_sequence<kWidth>();
  for (std::int64_t row = 0; row < rows; ++row, from += from_step, even += to_step, odd += to_step) {
    std::int64_t t = 0;
    for (; 2 * (t + kWidth) <= width; t += kWidth) {
      const Vector a = load(from + 2 * t, AllLanes{}, 0), b = load(from + 2 * t + kWidth, AllLanes{}, 0);
      store(even + t, every_second(a, b, kAll), AllLanes{});
      store(odd + t, every_other(a, b, kAll), AllLanes{});
    }
    const int rest = static_cast<int>(width - 2 * t), low = rest < kWidth ? rest : kWidth;
    if (rest == 0) continue;
    const Vector a =
        low == kWidth ? load(from + 2 * t, AllLanes{}, 0) : load(from + 2 * t, FirstLanes{low}, 0);
    const Vector b = rest > low ? load(from + 2 * t + kWidth, FirstLanes{rest - low}, 0) : Vector{};
    store(even + t, every_second(a, b, kAll), FirstLanes{(rest + 1) / 2});
    store(odd + t, every_other(a, b, kAll), FirstLanes{rest / 2});
  }
}

// y[t] = the maximum of x[2t], x[2t + 1] over two rows of x, for `rows` rows of y.
[[gnu::flatten]] inline void max_of_squares(std::int64_t rows, std::int64_t width, std::int64_t out_width,
                                            const float* x, float* y) {
  constexpr auto kAll = std::make_index_sequence<kWidth>();
  for (std::int64_t row = 0; row < rows; ++row, x += 2 * width, y += out_width) {
    const float *upper = x, *lower = x + width;
    std::int64_t t = 0;
    for (; t + kWidth <= out_width; t += kWidth) {
      const Vector a = load(upper + 2 * t, AllLanes{}, 0), b = load(upper + 2 * t + kWidth, AllLanes{}, 0);
      const Vector c = load(lower + 2 * t, AllLanes{}, 0), d = load(lower + 2 * t + kWidth, AllLanes{}, 0);
      const Vector above = lane::maximum(every_second(a, b, kAll), every_other(a, b, kAll));
      const Vector first = lane::maximum(above, every_second(c, d, kAll));
      store(y + t, lane::maximum(first, every_other(c, d, kAll)), AllLanes{});
    }
    if (t == out_width) continue;
    const int rest = static_cast<int>(2 * (out_width - t)), low = rest < kWidth ? rest : kWidth,
              high = rest - low;
    const auto part = [=](const float* from) {
      Vector a = low == kWidth ? load(from, AllLanes{}, 0) : load(from, FirstLanes{low}, 0);
      Vector b = high > 0 ? load(from + kWidth, FirstLanes{high}, 0) : Vector{};
      return std::pair(a, b);
    };
    const auto [a, b] = part(upper + 2 * t);
    const auto [c, d] = part(lower + 2 * t);
    const Vector above = lane::maximum(every_second(a, b, kAll), every_other(a, b, kAll));
    const Vector first = lane::maximum(above, every_second(c, d, kAll));
    store(y + t, lane::maximum(first, every_other(c, d, kAll)), FirstLanes{static_cast<int>(out_width - t)});
  }
}

}  // namespace weft::device::cpu::WEFT_LANES
