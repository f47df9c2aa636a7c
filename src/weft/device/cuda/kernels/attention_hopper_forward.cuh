// attention_hopper_forward.cuh -- attention with wgmma. Blocks are persistent. One thread issues
// TMA loads. Each other warpgroup has 64 queries and multiplies the next keys while it computes the
// softmax of the previous ones.
#pragma once
#include "attention_hopper.cuh"

// The query tile of this block in a turn. If some tiles see more keys than others, the heavy ones
// come first and every second turn reverses the order, to balance the blocks. Otherwise the tiles
// of a head are consecutive, so that its keys stay in cache. False if no turn is left; head is -1
// if this block has no tile in the turn.
__device__ __forceinline__ bool weft_item(int turn, int& head, int& q0) {
  constexpr int kTiles = (kQueries + kM - 1) / kM;
  constexpr long long kItems = (long long)kTiles * kHeads;
  if ((long long)turn * gridDim.x >= kItems) return false;
  const long long item = (long long)turn * gridDim.x + (turn % 2 ? gridDim.x - 1 - blockIdx.x : blockIdx.x);
  constexpr bool kHeavy = kCausal && !kWindowed;
  head = item >= kItems ? -1 : int(kHeavy ? item % kHeads : item / kTiles);
  q0 = (kTiles - 1 - int(kHeavy ? item / kHeads : item % kTiles)) * kM;
  return true;
}
extern "C" __global__ __launch_bounds__(kThreads, 1) void weft_attend_hopper(
    const __grid_constant__ weft_tensor_map map_q, const __grid_constant__ weft_tensor_map map_k,
    const __grid_constant__ weft_tensor_map map_v, WEFT_MASK T* y, float* log_sum) {
  extern __shared__ __align__(1024) unsigned char weft_smem[];
  constexpr int kSizeQ = kM * kEC * 128, kSizeK = kN * kEC * 128, kSizeV = kN * kFC * 128;
  const unsigned sq = weft_shared_address(weft_smem), sk = sq + kSizeQ, sv = sk + kStages * kSizeK,
                 mbarriers = sv + kStages * kSizeV;
  const unsigned q_full = mbarriers, q_empty = mbarriers + 8, k_full = mbarriers + 16,
                 k_empty = k_full + 8 * kStages, v_full = k_empty + 8 * kStages,
                 v_empty = v_full + 8 * kStages;
  const int warpgroup = threadIdx.x / 128;
  if (threadIdx.x == 0) {
    weft_mbarrier_init(q_full, 1);
    weft_mbarrier_init(q_empty, kWarpgroups);
    for (int i = 0; i < kStages; ++i) {
      weft_mbarrier_init(k_full + 8 * i, 1);
      weft_mbarrier_init(v_full + 8 * i, 1);
      weft_mbarrier_init(k_empty + 8 * i, kWarpgroups);
      weft_mbarrier_init(v_empty + 8 * i, kWarpgroups);
    }
    weft_mbarrier_fence_init();
  }
  __syncthreads();
  int stage = 0;
  unsigned phase = 0;
  if (warpgroup == 0) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kProducerRegisters));
    if (threadIdx.x == 0) {
      int head, q0;
      for (int turn = 0; weft_item(turn, head, q0); ++turn) {
        if (head < 0) continue;
        WEFT_COORDINATES
        const int last = q0 + kM < kQueries ? q0 + kM - 1 : kQueries - 1;
        const int end = weft_end(last);
        weft_mbarrier_wait(q_empty, (turn & 1) ^ 1);
        weft_mbarrier_expect_tx(q_full, kSizeQ);
#pragma unroll
        for (int c = 0; c < kEC; ++c)
          weft_tma_load(sq + c * kM * 128, map_q, q_full, c * 64, q0, q_1, q_2, q_3);
        for (int t = weft_first(q0) / kN * kN; t < end; t += kN) {
          weft_mbarrier_wait(k_empty + 8 * stage, phase ^ 1);
          weft_mbarrier_expect_tx(k_full + 8 * stage, kSizeK);
#pragma unroll
          for (int c = 0; c < kEC; ++c)
            weft_tma_load(sk + stage * kSizeK + c * kN * 128, map_k, k_full + 8 * stage, c * 64, t, k_1, k_2,
                          k_3);
          weft_mbarrier_wait(v_empty + 8 * stage, phase ^ 1);
          weft_mbarrier_expect_tx(v_full + 8 * stage, kSizeV);
#pragma unroll
          for (int c = 0; c < kFC; ++c)
            weft_tma_load(sv + stage * kSizeV + c * kN * 128, map_v, v_full + 8 * stage, c * 64, t, v_1, v_2,
                          v_3);
          if (++stage == kStages) stage = 0, phase ^= 1;
        }
      }
    }
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kConsumerRegisters));
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
    const bool is_elected = threadIdx.x % 128 == 0;
    int head, q0;
    for (int turn = 0; weft_item(turn, head, q0); ++turn) {
      if (head < 0) continue;
      const int mine = q0 + (warpgroup - 1) * 64;
      const int last = q0 + kM < kQueries ? q0 + kM - 1 : kQueries - 1;
      const int end = weft_end(last);
      int t = weft_first(q0) / kN * kN;
      const int end_mine = weft_end(mine + 63 < kQueries ? mine + 63 : kQueries - 1);
      float o[kFP / 2], s[kN / 2], most[2], total[2];
      unsigned p[kN / 4];
#pragma unroll
      for (int j = 0; j < kFP / 2; ++j) o[j] = 0.0f;
      most[0] = most[1] = -WEFT_INFINITY;
      total[0] = total[1] = 0.0f;
      const auto products = [&](int at) {
        weft_wgmma_fence();
#pragma unroll
        for (int i = 0; i < kEP / 16; ++i)
          weft_wgmma_ss<0, 0>(
              s, weft_wgmma_descriptor(sq + i / 4 * kM * 128 + (warpgroup - 1) * 8192 + i % 4 * 32, 16),
              weft_wgmma_descriptor(sk + at * kSizeK + i / 4 * kN * 128 + i % 4 * 32, 16), i > 0);
        weft_wgmma_commit();
      };
      const auto gather = [&](int at) {
        weft_wgmma_fence();
#pragma unroll
        for (int i = 0; i < kN / 16; ++i)
          weft_wgmma_rs<1>(o, p + 4 * i, weft_wgmma_descriptor(sv + at * kSizeV + i * 2048, kN * 128));
        weft_wgmma_commit();
      };
      // Replaces scores by their exponentials; earlier sums must be multiplied by `smaller`.
      const auto soften = [&](float(&smaller)[2]) {
        const bool edge = kMasked || t + kN > weft_end(mine) || t < weft_first(mine + 63);
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          const int row = mine + warp * 16 + h * 8 + lane / 4;
          if (kFactorLeft != 1.0f)
            for (int j = 0; j < kN / 8; ++j)
              s[4 * j + 2 * h] *= kFactorLeft, s[4 * j + 2 * h + 1] *= kFactorLeft;
          if (edge) {
            const int low = weft_first(row) - t - lane % 4 * 2, high = weft_end(row) - t - lane % 4 * 2;
            const unsigned char* seen = nullptr;
            if (kMasked) {
              WEFT_HEADS
              seen = WEFT_MASK_AT(row < kQueries ? row : 0, t + lane % 4 * 2);
            }
#pragma unroll
            for (int j = 0; j < kN / 8; ++j)
#pragma unroll
              for (int u = 0; u < 2; ++u)
                if ((kWindowed && j * 8 + u < low) || j * 8 + u >= high ||
                    (kMasked && seen[(j * 8 + u) * kMaskK] == 0))
                  s[4 * j + 2 * h + u] = -WEFT_INFINITY;
          }
          float largest = fmaxf(most[h], s[2 * h]), other = s[2 * h + 1];
#pragma unroll
          for (int j = 1; j < kN / 8; ++j)
            largest = fmaxf(largest, s[4 * j + 2 * h]), other = fmaxf(other, s[4 * j + 2 * h + 1]);
          largest = fmaxf(largest, other);
          largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, 1));
          largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, 2));
          const float shift = largest == -WEFT_INFINITY ? 0.0f : largest * kScaleLog2;
          smaller[h] = weft_exp2(most[h] * kScaleLog2 - shift);
          most[h] = largest;
          float sum = 0.0f, more = 0.0f;
#pragma unroll
          for (int j = 0; j < kN / 8; ++j) {
            s[4 * j + 2 * h] = weft_exp2(s[4 * j + 2 * h] * kScaleLog2 - shift);
            s[4 * j + 2 * h + 1] = weft_exp2(s[4 * j + 2 * h + 1] * kScaleLog2 - shift);
            sum += s[4 * j + 2 * h];
            more += s[4 * j + 2 * h + 1];
          }
          total[h] = total[h] * smaller[h] + (sum + more);
        }
      };
      const auto pack = [&]() {
#pragma unroll
        for (int j = 0; j < kN / 4; ++j) p[j] = weft_pack2(s[2 * j], s[2 * j + 1]);
      };
      weft_mbarrier_wait(q_full, turn & 1);
      if (t < end_mine) {
        float smaller[2];
        weft_mbarrier_wait(k_full + 8 * stage, phase);
        products(stage);
        weft_wgmma_wait<0>();
        weft_fence_operands(s);
        if (is_elected) weft_mbarrier_arrive(k_empty + 8 * stage);
        soften(smaller);
        pack();
        for (t += kN; t < end_mine; t += kN) {
          const int before = stage;
          const unsigned phase_before = phase;
          if (++stage == kStages) stage = 0, phase ^= 1;
          weft_mbarrier_wait(k_full + 8 * stage, phase);
          products(stage);
          weft_mbarrier_wait(v_full + 8 * before, phase_before);
          gather(before);
          weft_wgmma_wait<1>();
          weft_fence_operands(s);
          if (is_elected) weft_mbarrier_arrive(k_empty + 8 * stage);
          soften(smaller);
          weft_wgmma_wait<0>();
          weft_fence_operands(o);
          if (is_elected) weft_mbarrier_arrive(v_empty + 8 * before);
#pragma unroll
          for (int j = 0; j < kFP / 8; ++j) {
            o[4 * j] *= smaller[0], o[4 * j + 1] *= smaller[0];
            o[4 * j + 2] *= smaller[1], o[4 * j + 3] *= smaller[1];
          }
          pack();
        }
        if (is_elected) weft_mbarrier_arrive(q_empty);
        weft_mbarrier_wait(v_full + 8 * stage, phase);
        gather(stage);
        weft_wgmma_wait<0>();
        weft_fence_operands(o);
        if (is_elected) weft_mbarrier_arrive(v_empty + 8 * stage);
        if (++stage == kStages) stage = 0, phase ^= 1;
      } else if (is_elected) {
        weft_mbarrier_arrive(q_empty);
      }
      // Skip keys that only other warpgroups' rows see.
      for (; t < end; t += kN) {
        weft_mbarrier_wait(k_full + 8 * stage, phase);
        weft_mbarrier_wait(v_full + 8 * stage, phase);
        if (is_elected) weft_mbarrier_arrive(k_empty + 8 * stage), weft_mbarrier_arrive(v_empty + 8 * stage);
        if (++stage == kStages) stage = 0, phase ^= 1;
      }
      WEFT_HEADS
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        float sum = total[h];
        sum += __shfl_xor_sync(0xffffffffu, sum, 1);
        sum += __shfl_xor_sync(0xffffffffu, sum, 2);
        const int row = mine + warp * 16 + h * 8 + lane / 4;
        const float share = sum == 0.0f ? 0.0f : 1.0f / sum;
        weft_store_row<kFP>(y + at_y + row * kY, o + 2 * h, share, lane, row < kQueries ? kF : 0);
        if (lane % 4 == 0 && row < kQueries)
          log_sum[at_sum + row * kSum] =
              sum == 0.0f ? -WEFT_INFINITY : most[h] * kScaleLog2 * 0.69314718055994531f + logf(sum);
      }
    }
  }
}
