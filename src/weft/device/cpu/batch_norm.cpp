#include "weft/device/cpu/batch_norm.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace weft::device::cpu {
namespace {

// Channels are taken so many at a time: what is known of them fits the stack, and with an inner of 1
// the loops run along them.
constexpr std::int64_t kChannels = 64;
using PerChannel = std::array<float, kChannels>;
using Totals = std::array<double, kChannels>;

// Sum of element(i) for i < n: sixteen partial sums, added in one fixed order.
template <class Element>
double sum_of(std::int64_t n, Element element) {
  constexpr std::int64_t kSums = 16;
  std::array<float, kSums> sums = {};
  std::int64_t i = 0;
  for (; i + kSums <= n; i += kSums)
    for (std::int64_t j = 0; j < kSums; ++j) sums[j] += element(i + j);
  double total = 0;
  for (; i < n; ++i) total += element(i);
  for (const float sum : sums) total += sum;
  return total;
}

// A few channels of x.
struct Channels {
  const BatchNorm& norm;
  std::int64_t first, count;

  std::int64_t start(std::int64_t b, std::int64_t c) const {
    return (b * norm.channels + first + c) * norm.inner;
  }

  // Mean over the batch of of(x, channel), for each channel.
  template <class Of>
  void mean(const float* x, PerChannel& result, Of of) const {
    Totals totals = {};
    for (std::int64_t b = 0; b < norm.batch; ++b) {
      const float* row = x + start(b, 0);
      if (norm.inner == 1)
        for (std::int64_t c = 0; c < count; ++c) totals[c] += of(row[c], c);
      else
        for (std::int64_t c = 0; c < count; ++c)
          totals[c] +=
              sum_of(norm.inner, [&, run = row + c * norm.inner](std::int64_t i) { return of(run[i], c); });
    }
    const auto points = static_cast<double>(norm.batch * norm.inner);
    for (std::int64_t c = 0; c < count; ++c) result[c] = static_cast<float>(totals[c] / points);
  }

  void normalize(const float* x, const PerChannel& mean, const float* rstd, float* y) const {
    for (std::int64_t b = 0; b < norm.batch; ++b) {
      const float* from = x + start(b, 0);
      float* to = y + start(b, 0);
      if (norm.inner == 1) {
        for (std::int64_t c = 0; c < count; ++c) to[c] = (from[c] - mean[c]) * rstd[c];
        continue;
      }
      for (std::int64_t c = 0; c < count; ++c, from += norm.inner, to += norm.inner)
        for (std::int64_t i = 0; i < norm.inner; ++i) to[i] = (from[i] - mean[c]) * rstd[c];
    }
  }
};

template <class Run>
void for_channels(const BatchNorm& norm, std::int64_t begin, std::int64_t end, Run run) {
  for (std::int64_t first = begin; first < end; first += kChannels)
    run(Channels{norm, first, std::min(kChannels, end - first)});
}

float reciprocal_deviation(float variance, float epsilon) { return 1.0f / std::sqrt(variance + epsilon); }

}  // namespace

void batch_norm_train(const BatchNorm& norm, std::int64_t begin, std::int64_t end, const float* x,
                      const float* mean, const float* variance, float* y, float* next_mean,
                      float* next_variance, float* rstd) {
  const auto points = static_cast<float>(norm.batch * norm.inner);
  const float unbias = points > 1 ? points / (points - 1) : 1.0f, old = 1.0f - norm.momentum;
  for_channels(norm, begin, end, [&](const Channels& channels) {
    PerChannel m, v;
    channels.mean(x, m, [](float element, std::int64_t) { return element; });
    channels.mean(x, v, [&](float element, std::int64_t c) { return (element - m[c]) * (element - m[c]); });
    for (std::int64_t c = 0; c < channels.count; ++c) {
      const std::int64_t at = channels.first + c;
      rstd[at] = reciprocal_deviation(v[c], norm.epsilon);
      next_mean[at] = old * mean[at] + norm.momentum * m[c];
      next_variance[at] = old * variance[at] + norm.momentum * (v[c] * unbias);
    }
    channels.normalize(x, m, rstd + channels.first, y);
  });
}

void batch_norm_infer(const BatchNorm& norm, std::int64_t begin, std::int64_t end, const float* x,
                      const float* mean, const float* variance, float* y, float* rstd) {
  for_channels(norm, begin, end, [&](const Channels& channels) {
    PerChannel m;
    std::copy_n(mean + channels.first, channels.count, m.begin());
    for (std::int64_t at = channels.first; at < channels.first + channels.count; ++at)
      rstd[at] = reciprocal_deviation(variance[at], norm.epsilon);
    channels.normalize(x, m, rstd + channels.first, y);
  });
}

}  // namespace weft::device::cpu
