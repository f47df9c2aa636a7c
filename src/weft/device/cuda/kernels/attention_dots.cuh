// attention_dots.cuh -- the sums of dy y per query, and the levels that the gradient reads.
#pragma once
#include "attention_common.cuh"

extern "C" __global__ __launch_bounds__(256) void weft_dots(const T* y, const T* dy, float* dots) {
  const long long i = (long long)blockIdx.x * 8 + threadIdx.x / 32;
  if (i >= (long long)kHeads * kQueries) return;
  const long long head = i / kQueries, row = i % kQueries;
  WEFT_HEADS
  float sum = 0.0f;
  for (int f = threadIdx.x % 32; f < kF; f += 32)
    sum += float(y[at_y + row * kY + f]) * float(dy[at_dy + row * kDY + f]);
  sum = weft_over_warp(sum, weft_join_sum());
  if (threadIdx.x % 32 == 0) dots[i] = sum;
}
// The log-sum of a row, scaled for exp2. Infinity, so that all weights are 0, past the last row or
// if no key was seen.
__device__ __forceinline__ float weft_level(const float* log_sum, int row) {
  if (row >= kQueries) return WEFT_INFINITY;
  const float x = log_sum[row * kSum];
  return x == -WEFT_INFINITY ? WEFT_INFINITY : x * 1.4426950408889634f;
}
