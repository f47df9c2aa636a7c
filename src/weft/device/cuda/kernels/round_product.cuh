// round_product.cuh -- rounds the f32 sums of several products to their type.
#pragma once
#include "preamble/element.cuh"

extern "C" __global__ void weft_round(const float* from, T* to, long long columns, long long rows,
                                      long long batch, long long row_stride, long long batch_stride) {
  const long long step = (long long)gridDim.x * blockDim.x;
  for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < columns * rows * batch; i += step)
    to[i / columns / rows * batch_stride + i / columns % rows * row_stride + i % columns] = from[i];
}
