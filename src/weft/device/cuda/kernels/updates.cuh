// updates.cuh -- the table of tensors that one optimizer launch updates; update_kernel.cpp writes
// the kernel.
#pragma once
#include "preamble/updates.cuh"

struct weft_tensor {
  void *in[4], *out[4];
  long long elements, in_packs, first;
};
struct weft_table {
  void* numbers[2];
  long long count;
  weft_tensor one[kMostTensors];
};
template <class T, int kCount>
struct alignas(sizeof(T) * kCount) weft_pack {
  T x[kCount];
};
constexpr int kByBlock = kThreads * kPack * kPacks;
// The tensor that this block updates.
__device__ __forceinline__ const weft_tensor& weft_tensor_of_block(const weft_table& table) {
  int which = 0;
  for (int step = kMostTensors / 2; step > 0; step /= 2)
    if (which + step < table.count && table.one[which + step].first <= blockIdx.x) which += step;
  return table.one[which];
}
