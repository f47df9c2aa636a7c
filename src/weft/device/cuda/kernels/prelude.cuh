// prelude.cuh -- the start of every kernel: narrow floats, pointwise functions, sums over warps and
// rows.
#pragma once
#include "preamble/cuda.cuh"

#define WEFT_INFINITY __int_as_float(0x7f800000)
// Narrow types in memory: computation is in f32, and stores round to nearest.
struct weft_bf16 {
  unsigned short bits;
  weft_bf16() = default;
  __device__ __forceinline__ weft_bf16(float x) { asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(x)); }
  __device__ __forceinline__ operator float() const { return __uint_as_float(unsigned(bits) << 16); }
};
struct weft_f16 {
  unsigned short bits;
  weft_f16() = default;
  __device__ __forceinline__ weft_f16(float x) { asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x)); }
  __device__ __forceinline__ operator float() const {
    float x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
    return x;
  }
};
__device__ __forceinline__ float weft_max(float a, float b) { return a > b || a != a ? a : b; }
__device__ __forceinline__ float weft_min(float a, float b) { return a < b || a != a ? a : b; }
__device__ __forceinline__ float weft_add(float a, float b) { return a + b; }
__device__ __forceinline__ float weft_sigmoid(float x) {
  const float e = expf(-fabsf(x));
  return x < 0.0f ? e / (1.0f + e) : 1.0f / (1.0f + e);
}
__device__ __forceinline__ float weft_normal_below(float x) {
  return 0.5f * (1.0f + erff(x * 0.70710678118654752f));
}
__device__ __forceinline__ float weft_normal_density(float x) {
  return 0.39894228040143268f * expf(-0.5f * x * x);
}
__device__ __forceinline__ float weft_tanh_of_cubic(float x) {
  return tanhf(0.79788456080286536f * (x + 0.044715f * x * x * x));
}
__device__ __forceinline__ float weft_gelu_tanh_slope(float x) {
  const float t = weft_tanh_of_cubic(x);
  const float inner = 0.79788456080286536f * (1.0f + 3.0f * 0.044715f * x * x);
  return 0.5f * (1.0f + t) + 0.5f * x * (1.0f - t * t) * inner;
}
__device__ __forceinline__ float weft_silu_slope(float x) {
  const float s = weft_sigmoid(x);
  return s * (1.0f + x * (1.0f - s));
}
// All-reduce over the threads of a row, in one order.
template <class F>
__device__ __forceinline__ float weft_over_warp(float x, F join) {
  for (int lane = 16; lane > 0; lane /= 2) x = join(x, __shfl_xor_sync(0xffffffffu, x, lane));
  return x;
}
template <int kThreads, class F>
__device__ __forceinline__ float weft_over_row(float x, float identity, F join) {
  x = weft_over_warp(x, join);
  if (kThreads <= 32) return x;
  __shared__ float parts[32];
  __syncthreads();
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = x;
  __syncthreads();
  x = threadIdx.x % 32 < kThreads / 32 ? parts[threadIdx.x % 32] : identity;
  return weft_over_warp(x, join);
}
struct weft_join_sum {
  __device__ float operator()(float a, float b) const { return a + b; }
};
struct weft_join_max {
  __device__ float operator()(float a, float b) const { return weft_max(a, b); }
};
struct weft_join_min {
  __device__ float operator()(float a, float b) const { return weft_min(a, b); }
};
