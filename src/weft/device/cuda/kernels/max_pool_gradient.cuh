// max_pool_gradient.cuh -- the gradient of max pooling.
//
// One block per band of a plane's rows. It first finds the maximum's position in each window that
// overlaps the band. Then each run of adjacent elements reads the windows over it, in order. A run
// begins where a window could, so the elements of a run that a window covers are known at compile
// time.
#pragma once
#include "max_pool_window.cuh"

struct alignas(sizeof(D) * kPack) Pack {
  D x[kPack];
};
__device__ __forceinline__ void weft_max_pool_gradient(const T* a, const T* b, D* r0, long long i) {
  __shared__ unsigned short largest[kShared];
  const T* const x = b + i / kBands * (kHeight * kWidth);
  const T* const dy = a + i / kBands * (kHigh * kWide);
  D* const dx = r0 + i / kBands * (kHeight * kWidth);
  const int first = int(i % kBands) * kBand, last = min(first + kBand, int(kHeight));
  const int from = max((first + kTop - kSize + kStride) / kStride, 0),
            to = min((last - 1 + kTop) / kStride + 1, kHigh);
  for (int k = threadIdx.x; k < (to - from) * kWide; k += 256) {
    float most;
    largest[k] = (unsigned short)weft_largest(x, from + k / kWide, k % kWide, most);
  }
  __syncthreads();
  for (int k = threadIdx.x; k < (last - first) * kRuns; k += 256) {
    const int h = first + k / kRuns, run = k % kRuns;
    float total[kRun];
#pragma unroll
    for (int u = 0; u < kRun; ++u) total[u] = 0.0f;
    for (int p = max((h + kTop - kSize + kStride) / kStride, 0); p < kHigh && p * kStride - kTop <= h; ++p) {
      const int row = (h + kTop - p * kStride) * kSize;
#pragma unroll
      for (int j = kFirst; j <= kLast; ++j) {
        const int q = run * (kRun / kStride) + j;
        if (q < 0 || q >= kWide) continue;
        const int where = largest[(p - from) * kWide + q];
        const float gradient = dy[p * kWide + q];
#pragma unroll
        for (int s = 0; s < kSize; ++s) {
          const int u = j * kStride - kLeft + s;
          if (u >= 0 && u < kRun && where == row + s) total[u] += gradient;
        }
      }
    }
#pragma unroll
    for (int u = 0; u < kRun; u += kPack) {
      if (run * kRun + u >= int(kWidth)) break;
      Pack made;
#pragma unroll
      for (int v = 0; v < kPack; ++v) made.x[v] = total[u + v];
      *reinterpret_cast<Pack*>(dx + h * int(kWidth) + run * kRun + u) = made;
    }
  }
  __syncthreads();
}
