// philox.cuh -- Philox-4x32-10, see base/random.h: an element's word depends only on its position
// in the whole tensor.
#pragma once
#include "preamble/cuda.cuh"

__device__ __forceinline__ unsigned weft_word(unsigned long long seed, unsigned long long stream,
                                              unsigned long long place) {
  const unsigned long long counter = place / 4;
  unsigned c0 = unsigned(counter), c1 = unsigned(counter >> 32), c2 = unsigned(stream),
           c3 = unsigned(stream >> 32);
  unsigned k0 = unsigned(seed), k1 = unsigned(seed >> 32);
  for (int round = 0; round < 10; ++round, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u) {
    const unsigned low0 = c0 * 0xD2511F53u, high0 = __umulhi(c0, 0xD2511F53u);
    const unsigned low1 = c2 * 0xCD9E8D57u, high1 = __umulhi(c2, 0xCD9E8D57u);
    c0 = high1 ^ c1 ^ k0;
    c1 = low1;
    c2 = high0 ^ c3 ^ k1;
    c3 = low0;
  }
  return place % 4 == 0 ? c0 : place % 4 == 1 ? c1 : place % 4 == 2 ? c2 : c3;
}
