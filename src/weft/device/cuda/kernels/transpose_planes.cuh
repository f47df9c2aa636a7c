// transpose_planes.cuh -- transposes planes of 16-bit elements, for cuDNN's channels-last kernels.
#pragma once
#include "preamble/cuda.cuh"

extern "C" __global__ void __launch_bounds__(256)
    weft_transpose(const unsigned short* from, unsigned short* to, long long rows, long long columns) {
  __shared__ unsigned short tile[64][66];
  const unsigned across = unsigned((columns + 63) / 64), down = unsigned((rows + 63) / 64);
  const unsigned plane = blockIdx.x / (across * down), at = blockIdx.x % (across * down);
  const unsigned left = at % across * 64, top = at / across * 64, lane = threadIdx.x % 32,
                 warp = threadIdx.x / 32;
  from += plane * rows * columns;
  to += plane * rows * columns;
  const bool pairs = columns % 2 == 0, pairs_after = rows % 2 == 0;
#pragma unroll
  for (unsigned r = 0; r < 64; r += 8) {
    const unsigned row = top + r + warp;
    if (row >= rows) continue;
    const unsigned short* const line = from + row * columns;
    if (pairs && left + 2 * lane < columns)
      *reinterpret_cast<unsigned*>(&tile[r + warp][2 * lane]) =
          *reinterpret_cast<const unsigned*>(line + left + 2 * lane);
    if (!pairs)
      for (unsigned c = lane; c < 64 && left + c < columns; c += 32) tile[r + warp][c] = line[left + c];
  }
  __syncthreads();
#pragma unroll
  for (unsigned c = 0; c < 64; c += 8) {
    const unsigned column = left + c + warp;
    if (column >= columns) continue;
    unsigned short* const line = to + column * rows;
    if (pairs_after && top + 2 * lane < rows)
      *reinterpret_cast<unsigned*>(line + top + 2 * lane) =
          unsigned(tile[2 * lane][c + warp]) | unsigned(tile[2 * lane + 1][c + warp]) << 16;
    if (!pairs_after)
      for (unsigned r = lane; r < 64 && top + r < rows; r += 32) line[top + r] = tile[r][c + warp];
  }
}
