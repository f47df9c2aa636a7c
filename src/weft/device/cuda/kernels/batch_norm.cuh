// batch_norm.cuh -- batch norm, and the moments it needs.
//
// Blocks are (channel, part of its points). The first kernel computes the moments of each part, the
// second one the results. A thread sums the differences from its first point and their squares, so
// that a mean far from zero costs no precision. Threads and parts are combined in one order, by
// every block that needs the whole.
#pragma once
#include "preamble/batch_norm.cuh"

struct Moments {
  float count, mean, squares;
};  // squares: sum of squared deviations from the mean
__device__ __forceinline__ Moments weft_joined(Moments a, Moments b) {
  const float count = a.count + b.count, apart = b.mean - a.mean,
              share = count > 0.0f ? b.count / count : 0.0f;
  return {count, a.mean + apart * share, a.squares + b.squares + apart * apart * a.count * share};
}
__device__ __forceinline__ Moments weft_moments_over_warp(Moments x) {
  for (int lane = 1; lane < 32; lane *= 2) {
    const Moments other = {__shfl_down_sync(0xffffffffu, x.count, lane),
                           __shfl_down_sync(0xffffffffu, x.mean, lane),
                           __shfl_down_sync(0xffffffffu, x.squares, lane)};
    x = weft_joined(x, other);
  }
  return x;
}
struct alignas(sizeof(T) * kPack) Pack {
  T x[kPack];
};
// Calls each(index) for this block's packs of a channel.
template <class F>
__device__ __forceinline__ void weft_points(unsigned channel, F each) {
  const long long base =
      (long long)(channel / kChannels) * kChannels * kPoints + (long long)(channel % kChannels) * kInner;
  const unsigned end = min((blockIdx.y + 1) * kEach, kPoints);
#pragma unroll 4
  for (unsigned k = blockIdx.y * kEach + threadIdx.x; k < end; k += 256)
    each(base + (long long)(k / kInner) * kChannels * kInner + k % kInner);
}
extern "C" __global__ void __launch_bounds__(256) weft_moments(const Pack* x, Moments* parts) {
  float first = 0.0f, sum = 0.0f, squares = 0.0f;
  unsigned packs = 0;
  weft_points(blockIdx.x, [&](long long at) {
    const Pack some = x[at];
    if (packs == 0) first = float(some.x[0]);
    ++packs;
#pragma unroll
    for (int u = 0; u < kPack; ++u) {
      const float apart = float(some.x[u]) - first;
      sum += apart;
      squares += apart * apart;
    }
  });
  const float count = float(packs * kPack), mean = packs > 0 ? sum / count : 0.0f;
  Moments mine = weft_moments_over_warp({count, first + mean, fmaxf(squares - sum * mean, 0.0f)});
  __shared__ Moments warps[8];
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = mine;
  __syncthreads();
  if (threadIdx.x > 0) return;
  for (int w = 1; w < 8; ++w) mine = weft_joined(mine, warps[w]);
  parts[blockIdx.x * kParts + blockIdx.y] = mine;
}
extern "C" __global__ void __launch_bounds__(256)
    weft_norm(const Pack* x, const S* mean_before, const S* variance_before, const Moments* parts, Pack* y,
              S* mean_after, S* variance_after, R* rstd_after) {
  const unsigned i = blockIdx.x;
  float mean, rstd;
  if (kTrains) {
    Moments all = parts[i * kParts];
    for (int p = 1; p < kParts; ++p) all = weft_joined(all, parts[i * kParts + p]);
    mean = all.mean;
    const float variance = all.squares / float(kPoints * kPack);
    rstd = 1.0f / sqrtf(variance + kEpsilon);
    if (threadIdx.x == 0 && blockIdx.y == 0) {
      rstd_after[i] = rstd;
      mean_after[i] = kKept * float(mean_before[i]) + kNew * mean;
      variance_after[i] = kKept * float(variance_before[i]) + kNew * (variance * kUnbiased);
    }
  } else {
    mean = float(mean_before[i]);
    rstd = 1.0f / sqrtf(float(variance_before[i]) + kEpsilon);
    if (threadIdx.x == 0 && blockIdx.y == 0) {
      rstd_after[i] = rstd;
      mean_after[i] = mean_before[i];
      variance_after[i] = variance_before[i];
    }
  }
  weft_points(i, [&](long long at) {
    const Pack some = x[at];
    Pack made;
#pragma unroll
    for (int u = 0; u < kPack; ++u) made.x[u] = (float(some.x[u]) - mean) * rstd;
    y[at] = made;
  });
}
