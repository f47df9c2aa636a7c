// weft/device/cpu/lanes_channels.h -- sums and normalization over channels of [batch, channels,
// inner]. Channels with contiguous elements are summed along them. With inner == 1, vectors run
// across the channels.
#pragma once
#include <algorithm>
#include <cstdint>

#include "weft/device/cpu/lanes_loops.h"

namespace weft::device::cpu::WEFT_LANES {

// Additions per lane in float before the sums are accumulated in double.
inline constexpr std::int64_t kAdditions = 64;

// The sum of element(x, c) over a contiguous run of channel c, as a vector of partial sums.
template <class Element>
Vector sum_run(const float* x, std::int64_t n, std::int64_t c, Vector sum, Element element) {
  std::int64_t i = 0;
  Vector second = {}, third = {}, fourth = {};
  for (; i + 4 * kWidth <= n; i += 4 * kWidth) {
    sum += element(load(x + i, AllLanes{}, 0), c);
    second += element(load(x + i + kWidth, AllLanes{}, 0), c);
    third += element(load(x + i + 2 * kWidth, AllLanes{}, 0), c);
    fourth += element(load(x + i + 3 * kWidth, AllLanes{}, 0), c);
  }
  for (; i + kWidth <= n; i += kWidth) sum += element(load(x + i, AllLanes{}, 0), c);
  return (sum + second) + (third + fourth);
}

// totals[c] = the sum of element(x, c) over channel c; `tail` yields 0 for lanes past the end of a
// run.
template <class Element, class Tail>
void sum_channels(const ChannelBlock& block, double* totals, Element element, Tail tail) {
  alignas(64) float sums[kMostChannels * kWidth];
  std::fill_n(totals, block.count, 0.0);
  const std::int64_t vectors = (block.inner + kWidth - 1) / kWidth;
  const std::int64_t together = std::max<std::int64_t>(kAdditions / vectors, 1);
  const std::int64_t whole = block.inner / kWidth * kWidth;
  const int rest = static_cast<int>(block.inner - whole);
  for (std::int64_t begin = 0; begin < block.batch; begin += together) {
    std::fill_n(sums, block.count * kWidth, 0.0f);
    for (std::int64_t b = begin; b < std::min(begin + together, block.batch); ++b)
      for (std::int64_t c = 0; c < block.count; ++c) {
        const float* run = block.x + b * block.step + c * block.inner;
        Vector sum = sum_run(run, whole, c, load(sums + c * kWidth, AllLanes{}, 0), element);
        if (rest > 0) sum += tail(run + whole, FirstLanes{rest}, c);
        store(sums + c * kWidth, sum, AllLanes{});
      }
    for (std::int64_t c = 0; c < block.count; ++c) {
      double total = 0;
      for (int k = 0; k < kWidth; ++k) total += sums[c * kWidth + k];
      totals[c] += total;
    }
  }
}

// As sum_channels(), for channels that have one element per row.
template <class Element>
void sum_columns(const ChannelBlock& block, double* totals, Element element) {
  alignas(64) float sums[kMostChannels];
  std::fill_n(totals, block.count, 0.0);
  for (std::int64_t begin = 0; begin < block.batch; begin += kAdditions) {
    std::fill_n(sums, block.count, 0.0f);
    for (std::int64_t b = begin; b < std::min(begin + kAdditions, block.batch); ++b)
      each(block.count, [&](std::int64_t c, auto lanes) {
        const Vector x = load(block.x + b * block.step + c, lanes, 0);
        store(sums + c, load(sums + c, lanes, 0) + element(x, c, lanes), lanes);
      });
    for (std::int64_t c = 0; c < block.count; ++c) totals[c] += sums[c];
  }
}

[[gnu::flatten]] inline void channel_sums(const ChannelBlock& block, double* totals) {
  if (block.inner == 1) return sum_columns(block, totals, [](Vector x, std::int64_t, auto) { return x; });
  sum_channels(
      block, totals, [](Vector x, std::int64_t) { return x; },
      [](const float* x, FirstLanes lanes, std::int64_t) { return load(x, lanes, 0); });
}

[[gnu::flatten]] inline void channel_squares(const ChannelBlock& block, const float* means, double* totals) {
  if (block.inner == 1)
    return sum_columns(block, totals, [=](Vector x, std::int64_t c, auto lanes) {
      const Vector centered = x - load(means + c, lanes, 0);
      return centered * centered;
    });
  const auto square = [=](Vector x, std::int64_t c) {
    const Vector centered = x - means[c];
    return centered * centered;
  };
  sum_channels(block, totals, square, [=](const float* x, FirstLanes lanes, std::int64_t c) {
    return square(load(x, lanes, means[c]), c);
  });
}

[[gnu::flatten]] inline void channel_normalize(const ChannelBlock& block, const float* means,
                                               const float* factors, float* y) {
  for (std::int64_t b = 0; b < block.batch; ++b) {
    const float* from = block.x + b * block.step;
    float* to = y + b * block.step;
    if (block.inner == 1) {
      each(block.count, [=](std::int64_t c, auto lanes) {
        store(to + c, (load(from + c, lanes, 0) - load(means + c, lanes, 0)) * load(factors + c, lanes, 0),
              lanes);
      });
      continue;
    }
    for (std::int64_t c = 0; c < block.count; ++c, from += block.inner, to += block.inner) {
      const float mean = means[c], factor = factors[c];
      each(block.inner, [=](std::int64_t i, auto lanes) {
        store(to + i, (load(from + i, lanes, 0) - mean) * factor, lanes);
      });
    }
  }
}

}  // namespace weft::device::cpu::WEFT_LANES
