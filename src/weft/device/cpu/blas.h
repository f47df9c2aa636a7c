// weft/device/cpu/blas.h -- the product of two matrices, the kernel under most others.
//
//   C = alpha * op(A) op(B) + beta * C        op(A) is m x k, op(B) is k x n, C is m x n
//
//   gemm(Transpose::no, Transpose::yes, m, n, k, 1, x, k, w, k, 0, y, n);    // y = x w^T
//
// Matrices are row-major; lda, ldb and ldc are the distances between rows *as stored*. With beta 0,
// C is only written, so it may hold anything before. C must not overlap A or B.
//
// Runs on the calling thread alone, and the same call gives the same bits every time. OpenBLAS does
// the work where the build has it (WEFT_HAS_OPENBLAS) and is the faster one: see blas.cpp. Else
// portable_gemm does, which is always there.
#pragma once
#include <cstdint>

#include "weft/device/cpu/narrow.h"
#include "weft/program/tasks/band.h"

namespace weft::device::cpu {

enum class Transpose : std::uint8_t { no, yes };

void gemm(Transpose a, Transpose b, std::int64_t m, std::int64_t n, std::int64_t k, float alpha,
          const float* A, std::int64_t lda, const float* B, std::int64_t ldb, float beta, float* C,
          std::int64_t ldc);
void gemm(Transpose a, Transpose b, std::int64_t m, std::int64_t n, std::int64_t k, double alpha,
          const double* A, std::int64_t lda, const double* B, std::int64_t ldb, double beta, double* C,
          std::int64_t ldc);

// The same, without what lies in `nothing`: to an element of C in a band of m and n any part of its k
// products may be added, or none; of a band with k, those in it may be left out, which must be zeros. Nothing
// outside the band changes by a bit where portable_gemm does the work.
void gemm(Transpose a, Transpose b, std::int64_t m, std::int64_t n, std::int64_t k, float alpha,
          const float* A, std::int64_t lda, const float* B, std::int64_t ldb, float beta, float* C,
          std::int64_t ldc, const program::Band& nothing);

// Keeps OpenBLAS from starting threads of its own: ours already share the cores. To be called once
// before the first gemm, while no other thread is inside one; without OpenBLAS it does nothing.
void use_one_blas_thread();

// Our own product: blocks that fit the caches, packed so that the innermost kernel reads in order.
//
//   every element of C adds its k products in the order of k, whatever m and n and its place are,
//
// so a product computed in pieces of rows or columns has the bits of the whole.
void portable_gemm(Transpose a, Transpose b, std::int64_t m, std::int64_t n, std::int64_t k, float alpha,
                   const float* A, std::int64_t lda, const float* B, std::int64_t ldb, float beta, float* C,
                   std::int64_t ldc);
void portable_gemm(Transpose a, Transpose b, std::int64_t m, std::int64_t n, std::int64_t k, double alpha,
                   const double* A, std::int64_t lda, const double* B, std::int64_t ldb, double beta,
                   double* C, std::int64_t ldc);
void portable_gemm(Transpose a, Transpose b, std::int64_t m, std::int64_t n, std::int64_t k, float alpha,
                   const float* A, std::int64_t lda, const float* B, std::int64_t ldb, float beta, float* C,
                   std::int64_t ldc, const program::Band& nothing);

// The same of narrow matrices, whose sums, and C, are f32; of bf16 by the instructions that there are, see
// bf16_gemm.h. `nothing` may be null.
void narrow_gemm(Transpose a, Transpose b, std::int64_t m, std::int64_t n, std::int64_t k, const Bf16* A,
                 std::int64_t lda, const Bf16* B, std::int64_t ldb, float beta, float* C, std::int64_t ldc,
                 const program::Band* nothing);
void narrow_gemm(Transpose a, Transpose b, std::int64_t m, std::int64_t n, std::int64_t k, const F16* A,
                 std::int64_t lda, const F16* B, std::int64_t ldb, float beta, float* C, std::int64_t ldc,
                 const program::Band* nothing);

// Widened as they are packed: the bits of portable_gemm of the widened operands.
void widened_gemm(Transpose a, Transpose b, std::int64_t m, std::int64_t n, std::int64_t k, const Bf16* A,
                  std::int64_t lda, const Bf16* B, std::int64_t ldb, float beta, float* C, std::int64_t ldc,
                  const program::Band* nothing);

}  // namespace weft::device::cpu
