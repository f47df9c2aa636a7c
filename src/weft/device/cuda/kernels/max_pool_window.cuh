// max_pool_window.cuh -- the maximum of a window and its position in row order: the first of
// equals, with NaN above all numbers; -1 if the window has only padding.
#pragma once
#include "preamble/pooling.cuh"

__device__ __forceinline__ int weft_largest(const T* x, int p, int q, float& most) {
  int best = -1;
  most = 0.0f;
  const int h = p * kStride - kTop, w = q * kStride - kLeft;
#pragma unroll kUnrolled
  for (int r = 0; r < kSize; ++r) {
    if (unsigned(h + r) >= kHeight) continue;
#pragma unroll kUnrolled
    for (int s = 0; s < kSize; ++s) {
      if (unsigned(w + s) >= kWidth) continue;
      const float value = x[(h + r) * int(kWidth) + w + s];
      if (best < 0 || value > most || (value != value && most == most)) best = r * kSize + s, most = value;
    }
  }
  return best;
}
