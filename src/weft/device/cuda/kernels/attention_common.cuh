// attention_common.cuh -- which keys a query attends to; included by every attention kernel.
#pragma once
#include "preamble/attention.cuh"

__device__ __forceinline__ int weft_clamp(long long x) { return x < 0 ? 0 : x > kKeys ? kKeys : int(x); }
// Query s attends to the keys [weft_first(s), weft_end(s)), except where the mask is 0.
__device__ __forceinline__ int weft_first(long long s) {
  return kWindowed ? weft_clamp(kBegin + s + 1 - kReach) : 0;
}
__device__ __forceinline__ int weft_end(long long s) { return kCausal ? weft_clamp(kBegin + s + 1) : kKeys; }
// Scores are scaled by log2(e), so that exp2 replaces exp: kScaleLog2 is the factor that is left to
// apply.
__device__ __forceinline__ float weft_exp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
