// weft/device/cpu/batch_norm.h -- batch normalization: mean 0 and variance 1 per channel.
//
//   y = (x - m) * rstd,  rstd = 1 / sqrt(v + epsilon)
//
//   train   m, v are the mean and biased variance of the batch; the running statistics move towards m and
//           the unbiased v by `momentum`
//   infer   m, v are the running statistics
//
// x is [batch, channels, inner], contiguous: rows and columns of an image form one inner index, and
// plain features have inner == 1. A call works on channels [begin, end). next_mean and
// next_variance may alias mean and variance.
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
