// attention_plain_gradient.cuh -- the gradient of attention in f32.
#pragma once
#include "attention_dots.cuh"
#include "attention_plain.cuh"

extern "C" __global__ __launch_bounds__(256) void weft_attention_dq(const T* q, const T* k, const T* v,
                                                                    const float* log_sum, const T* dy,
                                                                    WEFT_MASK const float* dots, T* dq) {
  extern __shared__ __align__(16) float weft_floats[];
  float* const sq = weft_floats;
  float* const sdy = sq + 32 * (kE + 1);
  float* const sk = sdy + 32 * (kF + 1);
  float* const sv = sk + 32 * (kE + 1);
  float* const sp = sv + 32 * (kF + 1);
  const int r = threadIdx.x / 8, c = threadIdx.x % 8;
  constexpr int kTiles = (kQueries + 31) / 32;
  const long long head = blockIdx.x % kHeads;
  const int q0 = (kTiles - 1 - int(blockIdx.x / kHeads)) * 32;
  WEFT_HEADS
  const int row = q0 + r, last = q0 + 32 < kQueries ? q0 + 31 : kQueries - 1, end = weft_end(last);
  weft_load(sq, q + at_q, kQ, q0, kQueries, kE);
  weft_load(sdy, dy + at_dy, kDY, q0, kQueries, kF);
  const float level = row < kQueries ? log_sum[at_sum + row * kSum] : -WEFT_INFINITY;
  const float dot = row < kQueries ? dots[head * kQueries + row] : 0.0f;
  float to[(kE + 7) / 8];
#pragma unroll
  for (int i = 0; i < (kE + 7) / 8; ++i) to[i] = 0.0f;
  for (int t = weft_first(q0) / 32 * 32; t < end; t += 32) {
    __syncthreads();
    weft_load(sk, k + at_k, kK, t, kKeys, kE);
    weft_load(sv, v + at_v, kV, t, kKeys, kF);
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int place = c + 8 * i, key = t + place;
      bool seen = level != -WEFT_INFINITY && key >= weft_first(row) && key < weft_end(row);
      if (kMasked) seen = seen && WEFT_SEEN;
      float ds = 0.0f;
      if (seen) {
        const float p = expf(weft_dot(sq + r * (kE + 1), sk + place * (kE + 1), kE) * kFactor - level);
        ds = p * (weft_dot(sdy + r * (kF + 1), sv + place * (kF + 1), kF) - dot);
      }
      sp[r * 33 + place] = ds;
    }
    __syncwarp();
    weft_accumulate<kE>(to, sp + r * 33, sk, c);
  }
  if (row >= kQueries) return;
  for (int i = 0; i < (kE + 7) / 8; ++i)
    if (c + 8 * i < kE) dq[at_dq + row * kDQ + c + 8 * i] = T(to[i] * kFactor);
}

extern "C" __global__ __launch_bounds__(256) void weft_attention_dk_dv(const T* q, const T* k, const T* v,
                                                                       const float* log_sum, const T* dy,
                                                                       WEFT_MASK const float* dots, T* dk,
                                                                       T* dv) {
  extern __shared__ __align__(16) float weft_floats[];
  float* const sq = weft_floats;
  float* const sdy = sq + 32 * (kE + 1);
  float* const sk = sdy + 32 * (kF + 1);
  float* const sv = sk + 32 * (kE + 1);
  float* const sp = sv + 32 * (kF + 1);
  float* const sds = sp + 32 * 33;
  const int r = threadIdx.x / 8, c = threadIdx.x % 8;
  constexpr int kApart = kHeads / kSharing;
  const int k0 = int(blockIdx.x / kApart) * 32, key = k0 + r;
  const long long group = blockIdx.x % kApart;
  const int after = k0 + 32 < kKeys ? k0 + 32 : kKeys;
  long long low = kCausal ? k0 - kBegin : 0, high = kWindowed ? after - 1 + kReach - kBegin : kQueries;
  if (low < 0) low = 0;
  if (high > kQueries) high = kQueries;
  float to_k[(kE + 7) / 8], to_v[(kF + 7) / 8];
#pragma unroll
  for (int i = 0; i < (kE + 7) / 8; ++i) to_k[i] = 0.0f;
#pragma unroll
  for (int i = 0; i < (kF + 7) / 8; ++i) to_v[i] = 0.0f;
  for (int shared = 0; shared < kSharing; ++shared) {
    const long long head = group * kSharing + shared;
    WEFT_HEADS
    if (shared == 0) {
      weft_load(sk, k + at_k, kK, k0, kKeys, kE);
      weft_load(sv, v + at_v, kV, k0, kKeys, kF);
    }
    for (int q0 = int(low / 32 * 32); q0 < high; q0 += 32) {
      __syncthreads();
      weft_load(sq, q + at_q, kQ, q0, kQueries, kE);
      weft_load(sdy, dy + at_dy, kDY, q0, kQueries, kF);
      __syncthreads();
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int place = c + 8 * i, row = q0 + place;
        const float level = row < kQueries ? log_sum[at_sum + row * kSum] : -WEFT_INFINITY;
        bool seen = level != -WEFT_INFINITY && key >= weft_first(row) && key < weft_end(row);
        if (kMasked) seen = seen && WEFT_SEEN;
        float p = 0.0f, ds = 0.0f;
        if (seen) {
          p = expf(weft_dot(sk + r * (kE + 1), sq + place * (kE + 1), kE) * kFactor - level);
          ds = p * (weft_dot(sv + r * (kF + 1), sdy + place * (kF + 1), kF) - dots[head * kQueries + row]);
        }
        sp[r * 33 + place] = p;
        sds[r * 33 + place] = ds;
      }
      __syncwarp();
      weft_accumulate<kF>(to_v, sp + r * 33, sdy, c);
      weft_accumulate<kE>(to_k, sds + r * 33, sq, c);
    }
  }
  if (key >= kKeys) return;
  const long long head = group * kSharing;
  WEFT_HEADS
  for (int i = 0; i < (kE + 7) / 8; ++i)
    if (c + 8 * i < kE) dk[at_dk + key * kDK + c + 8 * i] = T(to_k[i] * kFactor);
  for (int i = 0; i < (kF + 7) / 8; ++i)
    if (c + 8 * i < kF) dv[at_dv + key * kDV + c + 8 * i] = T(to_v[i]);
}
