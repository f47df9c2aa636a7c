// attention_hopper_gradient.cuh -- the gradient of attention with wgmma.
//
// A block has a tile of keys and iterates over queries. It accumulates dk and dv in registers, and
// adds to dq in memory, one block after the other. Blocks start in order of their numbers and wait
// only for lower ones, which are running or done, so there is no deadlock. Scores have the keys as
// rows, so that they stay in registers as the A operands for dk and dv.
#pragma once
#include "attention_hopper.cuh"

__device__ __forceinline__ void weft_load_shared2(float (&x)[2], unsigned at) {
  asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(x[0]), "=f"(x[1]) : "r"(at) : "memory");
}
__device__ __forceinline__ void weft_stmatrix_x4(unsigned at, const unsigned* x) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(at), "r"(x[0]),
               "r"(x[1]), "r"(x[2]), "r"(x[3])
               : "memory");
}
__device__ __forceinline__ int weft_near(long long x) { return x < -1 ? -1 : x > kMB ? kMB : int(x); }
// Levels and sums of dy y, per query. Rows are padded to whole tiles; the level of a padded row, or
// of one that saw no key, makes all its weights 0. Also clears the counters of blocks that added to
// each tile of dq.
extern "C" __global__ __launch_bounds__(256) void weft_dots_hopper(const T* y, const T* dy,
                                                                   const float* log_sum, float* scratch) {
  constexpr int kTilesM = (kQueries + kMB - 1) / kMB, kPadded = kTilesM * kMB, kLanes = kFC * 8;
  float* const levels = scratch;
  float* const dots = levels + (long long)kHeads * kPadded;
  int* const added = reinterpret_cast<int*>(dots + (long long)kHeads * kPadded);
  const long long thread = (long long)blockIdx.x * 256 + threadIdx.x, i = thread / kLanes;
  if (thread < (long long)kHeads * kTilesM * 2) added[thread] = 0;
  const long long head = i / kPadded;
  const int row = int(i % kPadded), f = int(thread % kLanes) * 8;
  WEFT_HEADS
  float sum = 0.0f;
  if (head < kHeads && row < kQueries && f < kF) {
    const uint4 a = *reinterpret_cast<const uint4*>(y + at_y + row * kY + f),
                b = *reinterpret_cast<const uint4*>(dy + at_dy + row * kDY + f);
    const T* const x = reinterpret_cast<const T*>(&a);
    const T* const z = reinterpret_cast<const T*>(&b);
#pragma unroll
    for (int u = 0; u < 8; ++u) sum += float(x[u]) * float(z[u]);
  }
#pragma unroll
  for (int far = kLanes / 2; far > 0; far /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, far);
  if (f > 0 || head >= kHeads) return;
  dots[i] = sum;
  const float x = row < kQueries ? log_sum[at_sum + row * kSum] : -WEFT_INFINITY;
  levels[i] = x == -WEFT_INFINITY ? WEFT_INFINITY : x * 1.4426950408889634f;
}

extern "C" __global__ __launch_bounds__(384, 1) void weft_attention_gradient_hopper(
    const __grid_constant__ weft_tensor_map map_q, const __grid_constant__ weft_tensor_map map_k,
    const __grid_constant__ weft_tensor_map map_v, const __grid_constant__ weft_tensor_map map_dy,
    WEFT_MASK float* scratch, T* dk, T* dv) {
  extern __shared__ __align__(1024) unsigned char weft_smem[];
  constexpr int kTilesM = (kQueries + kMB - 1) / kMB, kPadded = kTilesM * kMB,
                kTilesN = (kKeys + kNB - 1) / kNB;
  constexpr int kSizeK = kNB * kEC * 128, kSizeV = kNB * kFC * 128, kSizeQ = kMB * kEC * 128,
                kSizeY = kMB * kFC * 128;
  constexpr int kSizeS = kMB * kNB * 2, kSizeDQ = 64 * 64 * 4;
  const unsigned sk = weft_shared_address(weft_smem), sv = sk + kSizeK, sq = sv + kSizeV,
                 sdy = sq + 2 * kSizeQ, sds = sdy + 2 * kSizeY, sdq = sds + 2 * kSizeS,
                 slevel = sdq + 4 * kSizeDQ, sdot = slevel + 2 * kMB * 4, mbarriers = sdot + 2 * kMB * 4;
  const unsigned kv_full = mbarriers, q_full = mbarriers + 8, dy_full = mbarriers + 24,
                 empty = mbarriers + 40, dq_full = mbarriers + 56, dq_empty = mbarriers + 88;
  const float* const levels = scratch;
  const float* const dots = levels + (long long)kHeads * kPadded;
  int* const added = reinterpret_cast<int*>(const_cast<float*>(dots) + (long long)kHeads * kPadded);
  float* const sums = scratch + ((long long)kHeads * (2 * kPadded + 2 * kTilesM) + 31) / 32 * 32;
  const int warpgroup = threadIdx.x / 128;
  if (threadIdx.x == 0) {
    weft_mbarrier_init(kv_full, 1);
    for (int i = 0; i < 2; ++i) {
      weft_mbarrier_init(q_full + 8 * i, 1);
      weft_mbarrier_init(dy_full + 8 * i, 1);
      weft_mbarrier_init(empty + 8 * i, 2);
    }
    for (int i = 0; i < 4; ++i) {
      weft_mbarrier_init(dq_full + 8 * i, 4);
      weft_mbarrier_init(dq_empty + 8 * i, 1);
    }
    weft_mbarrier_fence_init();
  }
  __syncthreads();
  constexpr int kGroups = kHeads / kSharing;
  const int begin = int(blockIdx.x / (kTilesN * kTogether)) * kTogether;
  const int beside = kGroups - begin < kTogether ? kGroups - begin : kTogether,
            rest = int(blockIdx.x - begin * kTilesN);
  const int group = begin + rest % beside, j0 = kRising ? rest / beside : kTilesN - 1 - rest / beside,
            k0 = j0 * kNB;
  // The queries that may attend to a key of the tile.
  const int after = k0 + kNB < kKeys ? k0 + kNB : kKeys;
  long long low = kCausal ? k0 - kBegin : 0, high = kWindowed ? after - 1 + kReach - kBegin : kQueries;
  if (low < 0) low = 0;
  if (high > kQueries) high = kQueries;
  const int first = int(low / kMB);
  const int tiles = high > (long long)first * kMB ? int((high - (long long)first * kMB + kMB - 1) / kMB) : 0;
  const int turns = tiles * kSharing;
  if (warpgroup == 0) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(24));
    if (threadIdx.x == 0 && turns > 0) {
      {
        const int head = group * kSharing;
        WEFT_COORDINATES
        weft_mbarrier_expect_tx(kv_full, kSizeK + kSizeV);
#pragma unroll
        for (int c = 0; c < kEC; ++c)
          weft_tma_load(sk + c * kNB * 128, map_k, kv_full, c * 64, k0, k_1, k_2, k_3);
#pragma unroll
        for (int c = 0; c < kFC; ++c)
          weft_tma_load(sv + c * kNB * 128, map_v, kv_full, c * 64, k0, v_1, v_2, v_3);
      }
      for (int turn = 0; turn < turns; ++turn) {
        const int head = group * kSharing + turn / tiles,
                  tile = kRising ? first + tiles - 1 - turn % tiles : first + turn % tiles, stage = turn % 2;
        WEFT_COORDINATES
        weft_mbarrier_wait(empty + 8 * stage, (turn / 2 & 1) ^ 1);
        weft_mbarrier_expect_tx(q_full + 8 * stage, kSizeQ + kMB * 4);
#pragma unroll
        for (int c = 0; c < kEC; ++c)
          weft_tma_load(sq + stage * kSizeQ + c * kMB * 128, map_q, q_full + 8 * stage, c * 64, tile * kMB,
                        q_1, q_2, q_3);
        weft_bulk_load(slevel + stage * kMB * 4, levels + (long long)head * kPadded + tile * kMB, kMB * 4,
                       q_full + 8 * stage);
        weft_mbarrier_expect_tx(dy_full + 8 * stage, kSizeY + kMB * 4);
#pragma unroll
        for (int c = 0; c < kFC; ++c)
          weft_tma_load(sdy + stage * kSizeY + c * kMB * 128, map_dy, dy_full + 8 * stage, c * 64, tile * kMB,
                        dy_1, dy_2, dy_3);
        weft_bulk_load(sdot + stage * kMB * 4, dots + (long long)head * kPadded + tile * kMB, kMB * 4,
                       dy_full + 8 * stage);
      }
    } else if (threadIdx.x == 32 || threadIdx.x == 64) {
      // Blocks add to a tile of dq in a fixed order: the same bits on every run.
      const int part = threadIdx.x / 32 - 1;
      for (int turn = 0; turn < turns; ++turn) {
        const int head = group * kSharing + turn / tiles,
                  tile = kRising ? first + tiles - 1 - turn % tiles : first + turn % tiles;
        const long long most = kCausal ? ((long long)(tile + 1) * kMB - 1 + kBegin) / kNB : kTilesN - 1;
        const int before = kRising ? j0 : int(most < kTilesN - 1 ? most : kTilesN - 1) - j0;
        const long long at = ((long long)head * kTilesM + tile) * 2 + part;
        const int slot = part * 2 + turn % 2;
        weft_mbarrier_wait(dq_full + 8 * slot, turn / 2 & 1);
        if (before > 0) {
          int seen;
          do asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(seen) : "l"(added + at) : "memory");
          while (seen != before);
          asm volatile("fence.proxy.async;" ::: "memory");
          asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], %2;" ::"l"(
                           sums + at * 4096),
                       "r"(sdq + slot * kSizeDQ), "r"(kSizeDQ)
                       : "memory");
        } else {
          asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(sums + at * 4096),
                       "r"(sdq + slot * kSizeDQ), "r"(kSizeDQ)
                       : "memory");
        }
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
        weft_mbarrier_arrive(dq_empty + 8 * slot);
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
        asm volatile("fence.proxy.async;" ::: "memory");
        asm volatile("st.release.gpu.global.s32 [%0], %1;" ::"l"(added + at), "r"(before + 1) : "memory");
      }
    }
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(240));
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4, part = warpgroup - 1,
              mine = k0 + part * 64;
    const bool is_elected = threadIdx.x % 128 == 0;
    float to_k[kEP / 2], to_v[kFP / 2], s[kMB / 2], d[kMB / 2], dq[32];
    unsigned p[kMB / 4];
#pragma unroll
    for (int j = 0; j < kEP / 2; ++j) to_k[j] = 0.0f;
#pragma unroll
    for (int j = 0; j < kFP / 2; ++j) to_v[j] = 0.0f;
    const auto scores = [&](int stage) {
      weft_wgmma_fence();
#pragma unroll
      for (int i = 0; i < kEP / 16; ++i)
        weft_wgmma_ss<0, 0>(s, weft_wgmma_descriptor(sk + i / 4 * kNB * 128 + part * 8192 + i % 4 * 32, 16),
                            weft_wgmma_descriptor(sq + stage * kSizeQ + i / 4 * kMB * 128 + i % 4 * 32, 16),
                            i > 0);
      weft_wgmma_commit();
    };
    if (turns > 0) {
      weft_mbarrier_wait(kv_full, 0);
      weft_mbarrier_wait(q_full, 0);
      scores(0);
    }
    for (int turn = 0; turn < turns; ++turn) {
      const int stage = turn % 2;
      const unsigned phase = turn / 2 & 1;
      const int q0 = (kRising ? first + tiles - 1 - turn % tiles : first + turn % tiles) * kMB;
      weft_mbarrier_wait(dy_full + 8 * stage, phase);
      weft_wgmma_fence();
#pragma unroll
      for (int i = 0; i < kFP / 16; ++i)
        weft_wgmma_ss<0, 0>(d, weft_wgmma_descriptor(sv + i / 4 * kNB * 128 + part * 8192 + i % 4 * 32, 16),
                            weft_wgmma_descriptor(sdy + stage * kSizeY + i / 4 * kMB * 128 + i % 4 * 32, 16),
                            i > 0);
      weft_wgmma_commit();
      weft_wgmma_wait<1>();
      weft_fence_operands(s);
      const bool edge = kMasked || mine + 64 > weft_end(q0) || mine < weft_first(q0 + kMB - 1);
#pragma unroll
      for (int j = 0; j < kMB / 8; ++j) {
        float level[2];
        weft_load_shared2(level, slevel + stage * kMB * 4 + j * 32 + lane % 4 * 8);
#pragma unroll
        for (int i = 0; i < 4; ++i)
          s[4 * j + i] = weft_exp2(s[4 * j + i] * (kFactorLeft * kScaleLog2) - level[i % 2]);
      }
      if (edge) {
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          const int key = mine + warp * 16 + h * 8 + lane / 4, at = q0 + lane % 4 * 2;
          const int from = key >= kKeys ? kMB : kCausal ? weft_near(key - kBegin - at) : -1;
          const int to = kWindowed ? weft_near(key - kBegin - 1 + kReach - at) : kMB;
          const unsigned char* seen = nullptr;
          if (kMasked) {
            const int head = group * kSharing + turn / tiles;
            WEFT_HEADS
            seen = WEFT_MASK_AT(at, key < kKeys ? key : 0);
          }
#pragma unroll
          for (int j = 0; j < kMB / 8; ++j)
#pragma unroll
            for (int u = 0; u < 2; ++u)
              if (j * 8 + u < from || (kWindowed && j * 8 + u > to) ||
                  (kMasked && (at + j * 8 + u >= kQueries || seen[(j * 8 + u) * kMaskQ] == 0)))
                s[4 * j + 2 * h + u] = 0.0f;
        }
      }
#pragma unroll
      for (int j = 0; j < kMB / 4; ++j) p[j] = weft_pack2(s[2 * j], s[2 * j + 1]);
      weft_wgmma_fence();
#pragma unroll
      for (int i = 0; i < kMB / 16; ++i)
        weft_wgmma_rs<1>(to_v, p + 4 * i, weft_wgmma_descriptor(sdy + stage * kSizeY + i * 2048, kMB * 128));
      weft_wgmma_commit();
      weft_wgmma_wait<1>();
      weft_fence_operands(d);
      unsigned ds[kMB / 4];
#pragma unroll
      for (int j = 0; j < kMB / 8; ++j) {
        float dot[2];
        weft_load_shared2(dot, sdot + stage * kMB * 4 + j * 32 + lane % 4 * 8);
#pragma unroll
        for (int h = 0; h < 2; ++h)
          ds[2 * j + h] = weft_pack2(s[4 * j + 2 * h] * (d[4 * j + 2 * h] - dot[0]),
                                     s[4 * j + 2 * h + 1] * (d[4 * j + 2 * h + 1] - dot[1]));
      }
      const unsigned to_s = sds + stage * kSizeS;
#pragma unroll
      for (int i = 0; i < kMB / 16; ++i) {
        const int row = warp * 16 + lane % 16;
        weft_stmatrix_x4(weft_swizzled(to_s + i / 4 * kNB * 128, part * 64 + row, i % 4 * 2 + lane / 16),
                         ds + 4 * i);
      }
      weft_fence_proxy_async();
      asm volatile("bar.sync 1, 256;" ::: "memory");
      weft_wgmma_fence();
#pragma unroll
      for (int i = 0; i < kNB / 16; ++i)
        weft_wgmma_ss<1, 1>(
            dq, weft_wgmma_descriptor(to_s + (kMB == 128 ? part * kNB * 128 : 0) + i * 2048, 16),
            weft_wgmma_descriptor(sk + (kMB == 128 ? 0 : part * kNB * 128) + i * 2048, 16), i > 0);
      weft_wgmma_commit();
      weft_wgmma_fence();
#pragma unroll
      for (int i = 0; i < kMB / 16; ++i)
        weft_wgmma_rs<1>(to_k, ds + 4 * i, weft_wgmma_descriptor(sq + stage * kSizeQ + i * 2048, kMB * 128));
      weft_wgmma_commit();
      const bool more = turn + 1 < turns;
      if (more) {
        weft_mbarrier_wait(q_full + 8 * (stage ^ 1), (turn + 1) / 2 & 1);
        scores(stage ^ 1);
        weft_wgmma_wait<2>();
      } else {
        weft_wgmma_wait<1>();
      }
      weft_fence_operands(dq);
      const int slot = part * 2 + stage;
      weft_mbarrier_wait(dq_empty + 8 * slot, phase ^ 1);
#pragma unroll
      for (int j = 0; j < 8; ++j)
        asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(sdq + slot * kSizeDQ + j * 2048 +
                                                                      (threadIdx.x % 128) * 16),
                     "f"(dq[4 * j]), "f"(dq[4 * j + 1]), "f"(dq[4 * j + 2]), "f"(dq[4 * j + 3])
                     : "memory");
      weft_fence_proxy_async();
      __syncwarp();
      if (lane == 0) weft_mbarrier_arrive(dq_full + 8 * slot);
      if (more)
        weft_wgmma_wait<1>();
      else
        weft_wgmma_wait<0>();
      weft_fence_operands(to_k);
      weft_fence_operands(to_v);
      if (is_elected) weft_mbarrier_arrive(empty + 8 * stage);
    }
    const int head = group * kSharing;
    WEFT_HEADS
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int key = mine + warp * 16 + h * 8 + lane / 4;
      weft_store_row<kEP>(dk + at_dk + key * kDK, to_k + 2 * h, kFactor, lane, key < kKeys ? kE : 0);
      weft_store_row<kFP>(dv + at_dv + key * kDV, to_v + 2 * h, 1.0f, lane, key < kKeys ? kF : 0);
    }
  }
}

extern "C" __global__ __launch_bounds__(256) void weft_convert_dq_hopper(const float* scratch, T* dq) {
  constexpr int kTilesM = (kQueries + kMB - 1) / kMB, kPadded = kTilesM * kMB;
  const int* const added = reinterpret_cast<const int*>(scratch + (long long)kHeads * 2 * kPadded);
  const float* const sums = scratch + ((long long)kHeads * (2 * kPadded + 2 * kTilesM) + 31) / 32 * 32;
  const int part = threadIdx.x / 128, lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
  const long long head = blockIdx.x / kTilesM, at = (long long)blockIdx.x * 2 + part;
  const int q0 = int(blockIdx.x % kTilesM) * kMB + (kMB == 128 ? part * 64 : 0),
            column = kMB == 128 ? 0 : part * 64;
  float x[32];
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    const float4 four =
        added[at] == 0 ? make_float4(0.0f, 0.0f, 0.0f, 0.0f)
                       : *reinterpret_cast<const float4*>(sums + at * 4096 + j * 512 + threadIdx.x % 128 * 4);
    x[4 * j] = four.x, x[4 * j + 1] = four.y, x[4 * j + 2] = four.z, x[4 * j + 3] = four.w;
  }
  WEFT_HEADS
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const int row = q0 + warp * 16 + h * 8 + lane / 4;
    weft_store_row<64>(dq + at_dq + row * kDQ + column, x + 2 * h, kFactor, lane,
                       row < kQueries ? kE - column : 0);
  }
}
