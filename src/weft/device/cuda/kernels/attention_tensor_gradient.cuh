// attention_tensor_gradient.cuh -- the gradient of attention with mma.sync.
#pragma once
#include "attention_dots.cuh"
#include "attention_tensor.cuh"

extern "C" __global__ __launch_bounds__(kThreadsQ) void weft_attention_dq(const T* q, const T* k, const T* v,
                                                                          const float* log_sum, const T* dy,
                                                                          WEFT_MASK const float* dots,
                                                                          T* dq) {
  extern __shared__ __align__(16) unsigned char weft_smem[];
  T* const sk = reinterpret_cast<T*>(weft_smem);
  T* const sv = sk + 2 * kNQ * (kEP + 8);
  T* const sq = sv + 2 * kNQ * (kFP + 8);
  T* const sdy = sq + kMQ * (kEP + 8);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  constexpr int kTiles = (kQueries + kMQ - 1) / kMQ;
  const long long head = blockIdx.x % kHeads;
  const int q0 = (kTiles - 1 - int(blockIdx.x / kHeads)) * kMQ;
  WEFT_HEADS
  const int last = q0 + kMQ < kQueries ? q0 + kMQ - 1 : kQueries - 1;
  const int end = weft_end(last);
  int t = weft_first(q0) / kNQ * kNQ;
  weft_load<kMQ, kE, kEP, kThreadsQ>(sq, q + at_q, kQ, q0, kQueries);
  weft_load<kMQ, kF, kFP, kThreadsQ>(sdy, dy + at_dy, kDY, q0, kQueries);
  weft_cp_async_commit();
  if (t < end) {
    weft_load<kNQ, kE, kEP, kThreadsQ>(sk, k + at_k, kK, t, kKeys);
    weft_load<kNQ, kF, kFP, kThreadsQ>(sv, v + at_v, kV, t, kKeys);
  }
  weft_cp_async_commit();
  weft_cp_async_wait<1>();
  __syncthreads();
  unsigned aq[kEP / 16][4], ady[kFP / 16][4];
#pragma unroll
  for (int i = 0; i < kEP / 16; ++i) weft_ldmatrix_x4(aq[i], weft_rows16(sq, lane, warp * 16, i * 16, kEP));
#pragma unroll
  for (int i = 0; i < kFP / 16; ++i) weft_ldmatrix_x4(ady[i], weft_rows16(sdy, lane, warp * 16, i * 16, kFP));
  const int mine = q0 + warp * 16;
  float level[2], dot[2], to[kEP / 8][4];
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const int row = mine + h * 8 + lane / 4;
    level[h] = weft_level(log_sum + at_sum, row);
    dot[h] = row < kQueries ? dots[head * kQueries + row] : 0.0f;
  }
#pragma unroll
  for (int j = 0; j < kEP / 8; ++j) to[j][0] = to[j][1] = to[j][2] = to[j][3] = 0.0f;
  for (int stage = 0; t < end; t += kNQ, stage ^= 1) {
    if (t + kNQ < end) {
      weft_load<kNQ, kE, kEP, kThreadsQ>(sk + (stage ^ 1) * kNQ * (kEP + 8), k + at_k, kK, t + kNQ, kKeys);
      weft_load<kNQ, kF, kFP, kThreadsQ>(sv + (stage ^ 1) * kNQ * (kFP + 8), v + at_v, kV, t + kNQ, kKeys);
      weft_cp_async_commit();
      weft_cp_async_wait<1>();
    } else {
      weft_cp_async_wait<0>();
    }
    __syncthreads();
    const T* const keys = sk + stage * kNQ * (kEP + 8);
    const T* const values = sv + stage * kNQ * (kFP + 8);
    float s[kNQ / 8][4], ds[kNQ / 8][4];
#pragma unroll
    for (int j = 0; j < kNQ / 8; ++j)
#pragma unroll
      for (int i = 0; i < 4; ++i) s[j][i] = ds[j][i] = 0.0f;
    weft_products<kNQ, kEP>(s, aq, keys, lane);
    weft_products<kNQ, kFP>(ds, ady, values, lane);
    const bool edge = kMasked || t + kNQ > weft_end(mine) || t < weft_first(mine + 15);
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int row = mine + h * 8 + lane / 4;
      const int low = weft_first(row), high = weft_end(row);
#pragma unroll
      for (int j = 0; j < kNQ / 8; ++j)
#pragma unroll
        for (int u = 0; u < 2; ++u) {
          float p = weft_exp2(s[j][2 * h + u] * (kFactorLeft * kScaleLog2) - level[h]);
          if (edge) {
            const int key = t + j * 8 + lane % 4 * 2 + u;
            bool seen = key >= low && key < high;
            if (kMasked) seen = seen && row < kQueries && WEFT_SEEN;
            if (!seen) p = 0.0f;
          }
          ds[j][2 * h + u] = p * (ds[j][2 * h + u] - dot[h]);
        }
    }
    weft_accumulate<kNQ, kEP>(to, ds, keys, lane);
    __syncthreads();
  }
  weft_cp_async_wait<0>();
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const int row = mine + h * 8 + lane / 4;
    if (row >= kQueries) continue;
#pragma unroll
    for (int j = 0; j < kEP / 8; ++j)
      weft_store2(dq + at_dq + row * kDQ, j * 8 + lane % 4 * 2, kE, to[j][2 * h] * kFactor,
                  to[j][2 * h + 1] * kFactor);
  }
}

extern "C" __global__ __launch_bounds__(kThreadsK) void weft_attention_dk_dv(const T* q, const T* k,
                                                                             const T* v, const float* log_sum,
                                                                             const T* dy,
                                                                             WEFT_MASK const float* dots,
                                                                             T* dk, T* dv) {
  extern __shared__ __align__(16) unsigned char weft_smem[];
  T* const sq = reinterpret_cast<T*>(weft_smem);
  T* const sdy = sq + 2 * kMK * (kEP + 8);
  T* const sk = sdy + 2 * kMK * (kFP + 8);
  T* const sv = sk + kNK * (kEP + 8);
  float* const levels = reinterpret_cast<float*>(sv + kNK * (kFP + 8));
  float* const dotted = levels + 2 * kMK;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  constexpr int kApart = kHeads / kSharing;
  const int k0 = int(blockIdx.x / kApart) * kNK;
  const long long group = blockIdx.x % kApart;
  // The queries that may attend to a key of the tile.
  const int after = k0 + kNK < kKeys ? k0 + kNK : kKeys;
  long long low = kCausal ? k0 - kBegin : 0, high = kWindowed ? after - 1 + kReach - kBegin : kQueries;
  if (low < 0) low = 0;
  if (high > kQueries) high = kQueries;
  const int first = int(low / kMK * kMK);
  const int tiles = high > first ? int((high - first + kMK - 1) / kMK) : 0;
  const auto load = [&](int turn, int stage) {
    const long long head = group * kSharing + turn / tiles;
    WEFT_HEADS
    const int q0 = first + turn % tiles * kMK;
    weft_load<kMK, kE, kEP, kThreadsK>(sq + stage * kMK * (kEP + 8), q + at_q, kQ, q0, kQueries);
    weft_load<kMK, kF, kFP, kThreadsK>(sdy + stage * kMK * (kFP + 8), dy + at_dy, kDY, q0, kQueries);
    if (threadIdx.x < kMK) {
      const int row = q0 + threadIdx.x;
      levels[stage * kMK + threadIdx.x] = weft_level(log_sum + at_sum, row);
      dotted[stage * kMK + threadIdx.x] = row < kQueries ? dots[head * kQueries + row] : 0.0f;
    }
  };
  {
    const long long head = group * kSharing;
    WEFT_HEADS
    weft_load<kNK, kE, kEP, kThreadsK>(sk, k + at_k, kK, k0, kKeys);
    weft_load<kNK, kF, kFP, kThreadsK>(sv, v + at_v, kV, k0, kKeys);
  }
  weft_cp_async_commit();
  const int turns = tiles * kSharing;
  if (turns > 0) load(0, 0);
  weft_cp_async_commit();
  weft_cp_async_wait<1>();
  __syncthreads();
  unsigned ak[kEP / 16][4], av[kFP / 16][4];
#pragma unroll
  for (int i = 0; i < kEP / 16; ++i) weft_ldmatrix_x4(ak[i], weft_rows16(sk, lane, warp * 16, i * 16, kEP));
#pragma unroll
  for (int i = 0; i < kFP / 16; ++i) weft_ldmatrix_x4(av[i], weft_rows16(sv, lane, warp * 16, i * 16, kFP));
  float to_k[kEP / 8][4], to_v[kFP / 8][4];
#pragma unroll
  for (int j = 0; j < kEP / 8; ++j) to_k[j][0] = to_k[j][1] = to_k[j][2] = to_k[j][3] = 0.0f;
#pragma unroll
  for (int j = 0; j < kFP / 8; ++j) to_v[j][0] = to_v[j][1] = to_v[j][2] = to_v[j][3] = 0.0f;
  const int mine = k0 + warp * 16;
  for (int turn = 0; turn < turns; ++turn) {
    const int stage = turn % 2;
    if (turn + 1 < turns) {
      load(turn + 1, stage ^ 1);
      weft_cp_async_commit();
      weft_cp_async_wait<1>();
    } else {
      weft_cp_async_wait<0>();
    }
    __syncthreads();
    const T* const queries = sq + stage * kMK * (kEP + 8);
    const T* const back = sdy + stage * kMK * (kFP + 8);
    const int q0 = first + turn % tiles * kMK;
    const long long head = group * kSharing + turn / tiles;
    float s[kMK / 8][4], ds[kMK / 8][4];
#pragma unroll
    for (int j = 0; j < kMK / 8; ++j)
#pragma unroll
      for (int i = 0; i < 4; ++i) s[j][i] = ds[j][i] = 0.0f;
    weft_products<kMK, kEP>(s, ak, queries, lane);
    const bool edge = kMasked || mine + 16 > weft_end(q0) || mine < weft_first(q0 + kMK - 1);
#pragma unroll
    for (int j = 0; j < kMK / 8; ++j)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int at = j * 8 + lane % 4 * 2 + i % 2;
        float p = weft_exp2(s[j][i] * (kFactorLeft * kScaleLog2) - levels[stage * kMK + at]);
        if (edge) {
          const int row = q0 + at, key = mine + i / 2 * 8 + lane / 4;
          bool seen = key >= weft_first(row) && key < weft_end(row);
          if (kMasked && seen && row < kQueries) {
            WEFT_HEADS
            seen = WEFT_SEEN;
          }
          if (!seen) p = 0.0f;
        }
        s[j][i] = p;
      }
    weft_accumulate<kMK, kFP>(to_v, s, back, lane);
    weft_products<kMK, kFP>(ds, av, back, lane);
#pragma unroll
    for (int j = 0; j < kMK / 8; ++j)
#pragma unroll
      for (int i = 0; i < 4; ++i)
        ds[j][i] = s[j][i] * (ds[j][i] - dotted[stage * kMK + j * 8 + lane % 4 * 2 + i % 2]);
    weft_accumulate<kMK, kEP>(to_k, ds, queries, lane);
    __syncthreads();
  }
  weft_cp_async_wait<0>();
  const long long head = group * kSharing;
  WEFT_HEADS
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const int key = mine + h * 8 + lane / 4;
    if (key >= kKeys) continue;
#pragma unroll
    for (int j = 0; j < kEP / 8; ++j)
      weft_store2(dk + at_dk + key * kDK, j * 8 + lane % 4 * 2, kE, to_k[j][2 * h] * kFactor,
                  to_k[j][2 * h + 1] * kFactor);
#pragma unroll
    for (int j = 0; j < kFP / 8; ++j)
      weft_store2(dv + at_dv + key * kDV, j * 8 + lane % 4 * 2, kF, to_v[j][2 * h], to_v[j][2 * h + 1]);
  }
}
