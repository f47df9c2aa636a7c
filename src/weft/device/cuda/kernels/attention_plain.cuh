// attention_plain.cuh -- f32 without tensor cores. A tile is 32 queries by 32 keys. Eight threads
// share each of its rows, with every eighth column each.
#pragma once
#include "attention_common.cuh"

__device__ __forceinline__ void weft_load(float* to, const T* from, long long step, int first, int limit,
                                          int wide) {
  for (int i = threadIdx.x; i < 32 * wide; i += 256) {
    const int r = i / wide, c = i % wide;
    to[r * (wide + 1) + c] = first + r < limit ? float(from[(first + r) * step + c]) : 0.0f;
  }
}
__device__ __forceinline__ float weft_dot(const float* a, const float* b, int n) {
  float sum = 0.0f;
  for (int i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}
template <class F>
__device__ __forceinline__ float weft_over_eight(float x, F join) {
  for (int lane = 4; lane > 0; lane /= 2) x = join(x, __shfl_xor_sync(0xffffffffu, x, lane));
  return x;
}
// to += x[row of 32] rows[32 x wide], every eighth column from `c` on
template <int kWide>
__device__ __forceinline__ void weft_accumulate(float (&to)[(kWide + 7) / 8], const float* x,
                                                const float* rows, int c) {
  for (int t = 0; t < 32; ++t) {
    const float factor = x[t];
#pragma unroll
    for (int i = 0; i < (kWide + 7) / 8; ++i)
      if (c + 8 * i < kWide) to[i] += factor * rows[t * (kWide + 1) + c + 8 * i];
  }
}
