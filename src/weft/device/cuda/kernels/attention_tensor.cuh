// attention_tensor.cuh -- bf16 and f16 on tensor cores: ldmatrix, mma.sync m16n8k16, cp.async.
#pragma once
#include "attention_common.cuh"

__device__ __forceinline__ unsigned weft_shared_address(const void* p) {
  return (unsigned)__cvta_generic_to_shared(p);
}
__device__ __forceinline__ void weft_ldmatrix_x4(unsigned (&r)[4], const T* p) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(weft_shared_address(p)));
}
__device__ __forceinline__ void weft_ldmatrix_x4_trans(unsigned (&r)[4], const T* p) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(weft_shared_address(p)));
}
__device__ __forceinline__ void weft_mma(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." WEFT_T "." WEFT_T
               ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
               "{%8, %9}, {%0, %1, %2, %3};"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
__device__ __forceinline__ unsigned weft_pack2(float low, float high) {
  unsigned both;
  asm("cvt.rn." WEFT_T "x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
  return both;
}
// Converts two result tiles to the A fragment of the next product.
__device__ __forceinline__ void weft_a_fragment(unsigned (&a)[4], const float (&x)[4], const float (&y)[4]) {
  a[0] = weft_pack2(x[0], x[1]);
  a[1] = weft_pack2(x[2], x[3]);
  a[2] = weft_pack2(y[0], y[1]);
  a[3] = weft_pack2(y[2], y[3]);
}
__device__ __forceinline__ void weft_cp_async_commit() { asm volatile("cp.async.commit_group;"); }
template <int kLeft>
__device__ __forceinline__ void weft_cp_async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kLeft));
}

// Rows of a tile have a stride of kPadded + 8, so that ldmatrix has no bank conflicts. Zero
// outside.
template <int kRows, int kWide, int kPadded, int kThreads>
__device__ __forceinline__ void weft_load(T* to, const T* from, long long step, int first, int limit) {
  constexpr int kChunks = kPadded / 8;
  for (int i = threadIdx.x; i < kRows * kChunks; i += kThreads) {
    const int r = i / kChunks, c = i % kChunks * 8;
    T* const at = to + r * (kPadded + 8) + c;
    const bool inside = first + r < limit;
    const T* const source = from + (inside ? (first + r) * step : 0);
    if (kAligned) {
      const int bytes = inside && c < kWide ? 16 : 0;
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(weft_shared_address(at)),
                   "l"(source + (c < kWide ? c : 0)), "r"(bytes));
    } else {
      for (int u = 0; u < 8; ++u) at[u] = inside && c + u < kWide ? source[c + u] : T(0.0f);
    }
  }
}
// ldmatrix addresses in a tile. weft_rows16: 16 x 16 rows as the A operand, or transposed as a B
// operand whose rows are summed over. weft_keys16: keys as the B operand.
__device__ __forceinline__ const T* weft_rows16(const T* tile, int lane, int row, int column, int width) {
  return tile + (row + lane % 16) * (width + 8) + column + lane / 16 * 8;
}
__device__ __forceinline__ const T* weft_keys16(const T* tile, int lane, int row, int column, int width) {
  return tile + (row + lane / 16 * 8 + lane % 8) * (width + 8) + column + lane / 8 % 2 * 8;
}
__device__ __forceinline__ void weft_store2(T* to, int column, int width, float x, float y) {
  if (kAligned && column + 1 < width) {
    *reinterpret_cast<unsigned*>(to + column) = weft_pack2(x, y);
  } else {
    if (column < width) to[column] = T(x);
    if (column + 1 < width) to[column + 1] = T(y);
  }
}
// A tile of products: 16 rows, in registers or in `rows`, by kN rows of `keys`.
template <int kN, int kP>
__device__ __forceinline__ void weft_products(float (&s)[kN / 8][4], const unsigned (&a)[kP / 16][4],
                                              const T* keys, int lane) {
#pragma unroll
  for (int i = 0; i < kP / 16; ++i)
#pragma unroll
    for (int j = 0; j < kN / 16; ++j) {
      unsigned b[4];
      weft_ldmatrix_x4(b, weft_keys16(keys, lane, j * 16, i * 16, kP));
      weft_mma(s[2 * j], a[i], b[0], b[1]);
      weft_mma(s[2 * j + 1], a[i], b[2], b[3]);
    }
}
// to[16 x kP] += x[16 x kN] rows[kN x kP]
template <int kN, int kP>
__device__ __forceinline__ void weft_accumulate(float (&to)[kP / 8][4], const float (&x)[kN / 8][4],
                                                const T* rows, int lane) {
#pragma unroll
  for (int i = 0; i < kN / 16; ++i) {
    unsigned a[4];
    weft_a_fragment(a, x[2 * i], x[2 * i + 1]);
#pragma unroll
    for (int j = 0; j < kP / 16; ++j) {
      unsigned b[4];
      weft_ldmatrix_x4_trans(b, weft_rows16(rows, lane, i * 16, j * 16, kP));
      weft_mma(to[2 * j], a, b[0], b[1]);
      weft_mma(to[2 * j + 1], a, b[2], b[3]);
    }
  }
}
