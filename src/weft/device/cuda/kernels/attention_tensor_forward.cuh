// attention_tensor_forward.cuh -- attention with mma.sync. Each warp has kTall times 16 queries. A
// row keeps its largest score and the sum of its exponentials so far.
#pragma once
#include "attention_tensor.cuh"

extern "C" __global__ __launch_bounds__(kThreads) void weft_attend(const T* q, const T* k, const T* v,
                                                                   WEFT_MASK T* y, float* log_sum) {
  extern __shared__ __align__(16) unsigned char weft_smem[];
  T* const sq = reinterpret_cast<T*>(weft_smem);
  T* const sk = sq + kM * (kEP + 8);
  T* const sv = sk + 2 * kN * (kEP + 8);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  constexpr int kTiles = (kQueries + kM - 1) / kM;
  const long long head = blockIdx.x % kHeads;
  const int q0 = (kTiles - 1 - int(blockIdx.x / kHeads)) * kM;
  WEFT_HEADS
  const int last = q0 + kM < kQueries ? q0 + kM - 1 : kQueries - 1;
  const int end = weft_end(last);
  int t = weft_first(q0) / kN * kN;
  weft_load<kM, kE, kEP, kThreads>(sq, q + at_q, kQ, q0, kQueries);
  if (t < end) {
    weft_load<kN, kE, kEP, kThreads>(sk, k + at_k, kK, t, kKeys);
    weft_load<kN, kF, kFP, kThreads>(sv, v + at_v, kV, t, kKeys);
  }
  weft_cp_async_commit();
  float o[kTall][kFP / 8][4], most[kTall][2], total[kTall][2];
#pragma unroll
  for (int m = 0; m < kTall; ++m) {
    most[m][0] = most[m][1] = -WEFT_INFINITY;
    total[m][0] = total[m][1] = 0.0f;
#pragma unroll
    for (int j = 0; j < kFP / 8; ++j) o[m][j][0] = o[m][j][1] = o[m][j][2] = o[m][j][3] = 0.0f;
  }
  const int mine = q0 + warp * 16 * kTall;
  for (int stage = 0; t < end; t += kN, stage ^= 1) {
    if (t + kN < end) {
      weft_load<kN, kE, kEP, kThreads>(sk + (stage ^ 1) * kN * (kEP + 8), k + at_k, kK, t + kN, kKeys);
      weft_load<kN, kF, kFP, kThreads>(sv + (stage ^ 1) * kN * (kFP + 8), v + at_v, kV, t + kN, kKeys);
      weft_cp_async_commit();
      weft_cp_async_wait<1>();
    } else {
      weft_cp_async_wait<0>();
    }
    __syncthreads();
    const T* const keys = sk + stage * kN * (kEP + 8);
    const T* const values = sv + stage * kN * (kFP + 8);
    float s[kTall][kN / 8][4];
#pragma unroll
    for (int m = 0; m < kTall; ++m)
#pragma unroll
      for (int j = 0; j < kN / 8; ++j) s[m][j][0] = s[m][j][1] = s[m][j][2] = s[m][j][3] = 0.0f;
#pragma unroll
    for (int i = 0; i < kEP / 16; ++i) {
      unsigned a[kTall][4];
#pragma unroll
      for (int m = 0; m < kTall; ++m)
        weft_ldmatrix_x4(a[m], weft_rows16(sq, lane, (warp * kTall + m) * 16, i * 16, kEP));
#pragma unroll
      for (int j = 0; j < kN / 16; ++j) {
        unsigned b[4];
        weft_ldmatrix_x4(b, weft_keys16(keys, lane, j * 16, i * 16, kEP));
#pragma unroll
        for (int m = 0; m < kTall; ++m) {
          weft_mma(s[m][2 * j], a[m], b[0], b[1]);
          weft_mma(s[m][2 * j + 1], a[m], b[2], b[3]);
        }
      }
    }
    const bool edge = kMasked || t + kN > weft_end(mine) || t < weft_first(mine + 16 * kTall - 1);
#pragma unroll
    for (int m = 0; m < kTall; ++m) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const int row = mine + m * 16 + h * 8 + lane / 4;
        if (kFactorLeft != 1.0f)
          for (int j = 0; j < kN / 8; ++j) s[m][j][2 * h] *= kFactorLeft, s[m][j][2 * h + 1] *= kFactorLeft;
        if (edge) {
          const int low = weft_first(row), high = weft_end(row);
#pragma unroll
          for (int j = 0; j < kN / 8; ++j)
#pragma unroll
            for (int u = 0; u < 2; ++u) {
              const int key = t + j * 8 + lane % 4 * 2 + u;
              bool seen = key >= low && key < high;
              if (kMasked) seen = seen && row < kQueries && WEFT_SEEN;
              if (!seen) s[m][j][2 * h + u] = -WEFT_INFINITY;
            }
        }
        float largest = most[m][h];
#pragma unroll
        for (int j = 0; j < kN / 8; ++j) largest = fmaxf(largest, fmaxf(s[m][j][2 * h], s[m][j][2 * h + 1]));
        largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, 1));
        largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, 2));
        const float shift = largest == -WEFT_INFINITY ? 0.0f : largest * kScaleLog2;
        const float smaller = weft_exp2(most[m][h] * kScaleLog2 - shift);
        most[m][h] = largest;
        float sum = 0.0f;
#pragma unroll
        for (int j = 0; j < kN / 8; ++j) {
          s[m][j][2 * h] = weft_exp2(s[m][j][2 * h] * kScaleLog2 - shift);
          s[m][j][2 * h + 1] = weft_exp2(s[m][j][2 * h + 1] * kScaleLog2 - shift);
          sum += s[m][j][2 * h] + s[m][j][2 * h + 1];
        }
        total[m][h] = total[m][h] * smaller + sum;
#pragma unroll
        for (int j = 0; j < kFP / 8; ++j) o[m][j][2 * h] *= smaller, o[m][j][2 * h + 1] *= smaller;
      }
    }
#pragma unroll
    for (int i = 0; i < kN / 16; ++i) {
      unsigned a[kTall][4];
#pragma unroll
      for (int m = 0; m < kTall; ++m) weft_a_fragment(a[m], s[m][2 * i], s[m][2 * i + 1]);
#pragma unroll
      for (int j = 0; j < kFP / 16; ++j) {
        unsigned b[4];
        weft_ldmatrix_x4_trans(b, weft_rows16(values, lane, i * 16, j * 16, kFP));
#pragma unroll
        for (int m = 0; m < kTall; ++m) {
          weft_mma(o[m][2 * j], a[m], b[0], b[1]);
          weft_mma(o[m][2 * j + 1], a[m], b[2], b[3]);
        }
      }
    }
    __syncthreads();
  }
  weft_cp_async_wait<0>();
#pragma unroll
  for (int m = 0; m < kTall; ++m)
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      float sum = total[m][h];
      sum += __shfl_xor_sync(0xffffffffu, sum, 1);
      sum += __shfl_xor_sync(0xffffffffu, sum, 2);
      const int row = mine + m * 16 + h * 8 + lane / 4;
      if (row >= kQueries) continue;
      const float share = sum == 0.0f ? 0.0f : 1.0f / sum;
      T* const to = y + at_y + row * kY;
#pragma unroll
      for (int j = 0; j < kFP / 8; ++j)
        weft_store2(to, j * 8 + lane % 4 * 2, kF, o[m][j][2 * h] * share, o[m][j][2 * h + 1] * share);
      if (lane % 4 == 0)
        log_sum[at_sum + row * kSum] =
            sum == 0.0f ? -WEFT_INFINITY : most[m][h] * kScaleLog2 * 0.69314718055994531f + logf(sum);
    }
}
