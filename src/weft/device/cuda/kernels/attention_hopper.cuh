// attention_hopper.cuh -- compute capability 9.0: mbarriers, TMA, swizzled tiles and wgmma.
#pragma once
#include "attention_common.cuh"

struct __align__(64) weft_tensor_map {
  unsigned char bytes[128];
};  // a CUtensorMap
__device__ __forceinline__ unsigned weft_shared_address(const void* p) {
  return (unsigned)__cvta_generic_to_shared(p);
}

// An mbarrier completes a phase when `count` threads have arrived and all expected bytes have been
// transferred. Waiting threads pass the parity of the phase.
__device__ __forceinline__ void weft_mbarrier_init(unsigned mbarrier, int count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(mbarrier), "r"(count) : "memory");
}
__device__ __forceinline__ void weft_mbarrier_fence_init() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
__device__ __forceinline__ void weft_mbarrier_expect_tx(unsigned mbarrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(mbarrier), "r"(bytes)
               : "memory");
}
__device__ __forceinline__ void weft_mbarrier_arrive(unsigned mbarrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(mbarrier) : "memory");
}
__device__ __forceinline__ void weft_mbarrier_wait(unsigned mbarrier, unsigned parity) {
  asm volatile(
      "{\n.reg .pred over;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 over, [%0], %1;\n@!over bra "
      "again;\n}" ::"r"(mbarrier),
      "r"(parity)
      : "memory");
}
// A TMA load of a box, 64 columns wide and 0 outside the tensor; and a bulk copy of contiguous
// floats.
__device__ __forceinline__ void weft_tma_load(unsigned to, const weft_tensor_map& from, unsigned mbarrier,
                                              int column, int row, int a, int b, int c) {
  asm volatile(
      "cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, "
      "%5, %6, %7}], [%2];" ::"r"(to),
      "l"(&from), "r"(mbarrier), "r"(column), "r"(row), "r"(a), "r"(b), "r"(c)
      : "memory");
}
__device__ __forceinline__ void weft_bulk_load(unsigned to, const float* from, int bytes, unsigned mbarrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
      "l"(from), "r"(bytes), "r"(mbarrier)
      : "memory");
}
// Orders plain stores to shared memory before wgmma and TMA, which use the async proxy.
__device__ __forceinline__ void weft_fence_proxy_async() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// The matrix descriptor of a tile: rows of 128 bytes in the 128-byte swizzle, as weft_tma_load
// stores them. Wider tiles are several of these, `apart` bytes from each other.
__device__ __forceinline__ unsigned long long weft_wgmma_descriptor(unsigned at, unsigned apart) {
  return (unsigned long long)((at & 0x3ffff) >> 4) | (unsigned long long)(apart >> 4) << 16 | 64ull << 32 |
         1ull << 62;
}
__device__ __forceinline__ unsigned weft_swizzled(unsigned tile, int row, int piece) {
  return tile + row * 128 + (piece ^ (row & 7)) * 16;
}
// wgmma is asynchronous: products between a fence and a commit are one group.
__device__ __forceinline__ void weft_wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void weft_wgmma_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int kLeft>
__device__ __forceinline__ void weft_wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kLeft) : "memory");
}
// Keeps the compiler from reading accumulators before the wait.
template <int n>
__device__ __forceinline__ void weft_fence_operands(float (&x)[n]) {
#pragma unroll
  for (int i = 0; i < n; ++i) asm volatile("" : "+f"(x[i])::"memory");
}
__device__ __forceinline__ unsigned weft_pack2(float low, float high) {
  unsigned both;
  asm("cvt.rn." WEFT_T "x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
  return both;
}
// A thread holds two adjacent columns of every eight in a row. Four threads exchange them, so that
// each stores eight.
template <int kWide>
__device__ __forceinline__ void weft_store_row(T* to, const float* x, float factor, int lane, int width) {
  const int me = lane % 4;
#pragma unroll
  for (int j = 0; j < kWide / 8; j += 4) {
    unsigned w[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      w[i] = j + i < kWide / 8 ? weft_pack2(x[4 * (j + i)] * factor, x[4 * (j + i) + 1] * factor) : 0u;
#pragma unroll
    for (int far = 1; far < 4; far *= 2)
#pragma unroll
      for (int i = 0; i < 4; ++i)
        if (!(i & far)) {
          const unsigned given = me & far ? w[i] : w[i | far];
          const unsigned got = __shfl_xor_sync(0xffffffffu, given, far);
          if (me & far)
            w[i] = got;
          else
            w[i | far] = got;
        }
    const int column = (j + me) * 8;
    if (column < width) *reinterpret_cast<uint4*>(to + column) = make_uint4(w[0], w[1], w[2], w[3]);
  }
}
