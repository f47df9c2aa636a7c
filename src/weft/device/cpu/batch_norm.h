// weft/device/cpu/batch_norm.h -- every channel shifted and scaled to mean 0 and variance 1.
//
//   y = (x - m) * rstd,  rstd = 1 / sqrt(v + epsilon)
//
//   train   m, v are the mean and biased variance of the batch; the running ones move towards m and the
//           unbiased v by `momentum`
//   infer   m, v are the running ones
//
// x is [batch, channels, inner], contiguous: an image's rows and columns are one inner index, and plain
// features have an inner of 1. A call works on channels [begin, end). next_mean and next_variance may
// be mean and variance themselves.
#pragma once
#include <cstdint>

namespace weft::device::cpu {

struct BatchNorm {
  std::int64_t batch = 0, channels = 0, inner = 1;
  float epsilon = 1e-5f, momentum = 0.1f;
};

void batch_norm_train(const BatchNorm& norm, std::int64_t begin, std::int64_t end, const float* x,
                      const float* mean, const float* variance, float* y, float* next_mean,
                      float* next_variance, float* rstd);

void batch_norm_infer(const BatchNorm& norm, std::int64_t begin, std::int64_t end, const float* x,
                      const float* mean, const float* variance, float* y, float* rstd);

}  // namespace weft::device::cpu
