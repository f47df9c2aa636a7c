// max_pool.cuh -- the maximum of each window.
#pragma once
#include "max_pool_window.cuh"

// One block per band: band `i % kBands` of the windows of plane `i / kBands`.
template <class R>
__device__ __forceinline__ void weft_max_pool(const T* a, R* r0, long long i) {
  const T* const x = a + i / kBands * (kHeight * kWidth);
  const int first = int(i % kBands) * kBand, windows = (min(first + kBand, kHigh) - first) * kWide;
  for (int k = threadIdx.x; k < windows; k += 256) {
    float most;
    weft_largest(x, first + k / kWide, k % kWide, most);
    r0[i / kBands * (kHigh * kWide) + first * kWide + k] = most;
  }
}
