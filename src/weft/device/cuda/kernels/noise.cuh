// noise.cuh -- fills memory with small bf16 and f16 numbers for trials.
#pragma once
#include "preamble/cuda.cuh"

extern "C" __global__ void weft_noise(unsigned* to, long long words) {
  const long long step = (long long)gridDim.x * blockDim.x;
  for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < words; i += step) {
    unsigned x = (unsigned)i * 2654435761u;
    x ^= x >> 15;
    x *= 2246822519u;
    x ^= x >> 13;
    to[i] = (x & 0x807f807fu) | 0x3f003f00u;
  }
}
