// attention_common.cuh -- who sees whom: what every attention kernel needs.
#pragma once
#include "preamble/attention.cuh"

__device__ __forceinline__ int weft_clamp(long long x) { return x < 0 ? 0 : x > kKeys ? kKeys : int(x); }
// Query s sees the keys [weft_first(s), weft_end(s)), but for the mask.
__device__ __forceinline__ int weft_first(long long s) {
  return kWindowed ? weft_clamp(kBegin + s + 1 - kReach) : 0;
}
__device__ __forceinline__ int weft_end(long long s) { return kCausal ? weft_clamp(kBegin + s + 1) : kKeys; }
// Scores are scaled by log2(e), so that exp2 gives what exp would: kScaleLog2 is the factor that is left to apply.
__device__ __forceinline__ float weft_exp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
