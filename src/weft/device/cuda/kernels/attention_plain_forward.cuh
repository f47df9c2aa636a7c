// attention_plain_forward.cuh -- attention in f32: a block per tile of queries.
#pragma once
#include "attention_plain.cuh"

extern "C" __global__ __launch_bounds__(256) void weft_attend(const T* q, const T* k, const T* v,
                                                              WEFT_MASK T* y, float* log_sum) {
  extern __shared__ __align__(16) float weft_floats[];
  float* const sq = weft_floats;
  float* const sk = sq + 32 * (kE + 1);
  float* const sv = sk + 32 * (kE + 1);
  float* const sp = sv + 32 * (kF + 1);
  const int r = threadIdx.x / 8, c = threadIdx.x % 8;
  constexpr int kTiles = (kQueries + 31) / 32;
  const long long head = blockIdx.x % kHeads;
  const int q0 = (kTiles - 1 - int(blockIdx.x / kHeads)) * 32;
  WEFT_HEADS
  const int row = q0 + r, last = q0 + 32 < kQueries ? q0 + 31 : kQueries - 1, end = weft_end(last);
  weft_load(sq, q + at_q, kQ, q0, kQueries, kE);
  float most = -WEFT_INFINITY, total = 0.0f, o[(kF + 7) / 8];
#pragma unroll
  for (int i = 0; i < (kF + 7) / 8; ++i) o[i] = 0.0f;
  for (int t = weft_first(q0) / 32 * 32; t < end; t += 32) {
    __syncthreads();
    weft_load(sk, k + at_k, kK, t, kKeys, kE);
    weft_load(sv, v + at_v, kV, t, kKeys, kF);
    __syncthreads();
    float s[4], largest = most;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int key = t + c + 8 * i;
      bool seen = key >= weft_first(row) && key < weft_end(row);
      if (kMasked) seen = seen && row < kQueries && WEFT_SEEN;
      s[i] = seen ? weft_dot(sq + r * (kE + 1), sk + (c + 8 * i) * (kE + 1), kE) * kFactor : -WEFT_INFINITY;
      largest = fmaxf(largest, s[i]);
    }
    largest = weft_over_eight(largest, weft_join_max());
    const float shift = largest == -WEFT_INFINITY ? 0.0f : largest, smaller = expf(most - shift);
    most = largest;
    total *= smaller;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float p = expf(s[i] - shift);
      total += p;
      sp[r * 33 + c + 8 * i] = p;
    }
    __syncwarp();
#pragma unroll
    for (int i = 0; i < (kF + 7) / 8; ++i) o[i] *= smaller;
    weft_accumulate<kF>(o, sp + r * 33, sv, c);
  }
  total = weft_over_eight(total, weft_join_sum());
  if (row >= kQueries) return;
  for (int i = 0; i < (kF + 7) / 8; ++i)
    if (c + 8 * i < kF) y[at_y + row * kY + c + 8 * i] = T(total == 0.0f ? 0.0f : o[i] / total);
  if (c == 0) log_sum[at_sum + row * kSum] = total == 0.0f ? -WEFT_INFINITY : most + logf(total);
}
