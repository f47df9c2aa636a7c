// pack.cuh -- elements read and written together.
#pragma once
#include "preamble/cuda.cuh"

template <class T, int kCount>
struct alignas(sizeof(T) * kCount < 16 ? sizeof(T) * kCount : 16) weft_pack {
  T x[kCount];
};
