#include "weft/device/cpu/batch_norm.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "weft/device/cpu/lanes.h"

namespace weft::device::cpu {
namespace {

using PerChannel = std::array<float, kMostChannels>;
using Totals = std::array<double, kMostChannels>;

// Works on a few channels at a time, so that they are still in the L2 cache when they are read
// again. With inner == 1 it takes as many as allowed, since vectors run across channels.
template <class Run>
void for_channels(const BatchNorm& norm, std::int64_t begin, std::int64_t end, const float* x, Run run) {
  constexpr std::int64_t kCached = 1 << 17;  // floats
  const std::int64_t most =
      norm.inner == 1 ? kMostChannels
                      : std::clamp<std::int64_t>(kCached / (norm.batch * norm.inner), 1, kMostChannels);
  for (std::int64_t first = begin; first < end; first += most)
    run(first, ChannelBlock{x + first * norm.inner, norm.batch, norm.channels * norm.inner,
                            std::min(most, end - first), norm.inner});
}

float reciprocal_deviation(float variance, float epsilon) { return 1.0f / std::sqrt(variance + epsilon); }

}  // namespace

void batch_norm_train(const BatchNorm& norm, std::int64_t begin, std::int64_t end, const float* x,
                      const float* mean, const float* variance, float* y, float* next_mean,
                      float* next_variance, float* rstd) {
  const auto points = static_cast<double>(norm.batch * norm.inner);
  const auto unbias = points > 1 ? static_cast<float>(points / (points - 1)) : 1.0f;
  const float old = 1.0f - norm.momentum;
  for_channels(norm, begin, end, x, [&](std::int64_t first, const ChannelBlock& block) {
    PerChannel m;
    Totals totals;
    channel_sums(block, totals.data());
    for (std::int64_t c = 0; c < block.count; ++c) m[c] = static_cast<float>(totals[c] / points);
    channel_squares(block, m.data(), totals.data());
    for (std::int64_t c = 0; c < block.count; ++c) {
      const std::int64_t at = first + c;
      const auto v = static_cast<float>(totals[c] / points);
      rstd[at] = reciprocal_deviation(v, norm.epsilon);
      next_mean[at] = old * mean[at] + norm.momentum * m[c];
      next_variance[at] = old * variance[at] + norm.momentum * (v * unbias);
    }
    channel_normalize(block, m.data(), rstd + first, y + first * norm.inner);
  });
}

void batch_norm_infer(const BatchNorm& norm, std::int64_t begin, std::int64_t end, const float* x,
                      const float* mean, const float* variance, float* y, float* rstd) {
  for_channels(norm, begin, end, x, [&](std::int64_t first, const ChannelBlock& block) {
    for (std::int64_t at = first; at < first + block.count; ++at)
      rstd[at] = reciprocal_deviation(variance[at], norm.epsilon);
    channel_normalize(block, mean + first, rstd + first, y + first * norm.inner);
  });
}

}  // namespace weft::device::cpu
