// weft/device/cpu/blas.h -- matrix multiplication, which most other kernels use.
//
//   C = alpha * op(A) op(B) + beta * C        op(A) is m x k, op(B) is k x n, C is m x n
//
//   gemm(Transpose::no, Transpose::yes, m, n, k, 1, x, k, w, k, 0, y, n);    // y = x w^T
//
// Matrices are row-major; lda, ldb and ldc are the distances between rows *as stored*. With beta 0,
// C is only written, so it may be uninitialized. C must not overlap A or B.
//
// Runs on the calling thread only. The same call gives the same bits every time. OpenBLAS does the
// work where the build has it (WEFT_HAS_OPENBLAS) and it is faster: see blas.cpp. Otherwise
// portable_gemm does, which is always available.
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

// As gemm(), but may skip `nothing`. If the band spans m and n, its elements of C may receive any
// subset of their k products. If it spans k, its products may be skipped and must be zero. Elements
// outside the band keep the same bits, where portable_gemm does the work.
void gemm(Transpose a, Transpose b, std::int64_t m, std::int64_t n, std::int64_t k, float alpha,
          const float* A, std::int64_t lda, const float* B, std::int64_t ldb, float beta, float* C,
          std::int64_t ldc, const program::Band& nothing);

// Stops OpenBLAS from starting its own threads: Weft's already use all cores. Call once before the
// first gemm, while no thread runs one. Does nothing without OpenBLAS.
void use_one_blas_thread();

// Weft's own product: cache blocks, packed so that the microkernel reads in order.
//
//   every element of C adds its k products in the order of k, whatever m, n and its position are,
//
// so a product computed in blocks of rows or columns has the bits of the whole.
void portable_gemm(Transpose a, Transpose b, std::int64_t m, std::int64_t n, std::int64_t k, float alpha,
                   const float* A, std::int64_t lda, const float* B, std::int64_t ldb, float beta, float* C,
                   std::int64_t ldc);
void portable_gemm(Transpose a, Transpose b, std::int64_t m, std::int64_t n, std::int64_t k, double alpha,
                   const double* A, std::int64_t lda, const double* B, std::int64_t ldb, double beta,
                   double* C, std::int64_t ldc);
void portable_gemm(Transpose a, Transpose b, std::int64_t m, std::int64_t n, std::int64_t k, float alpha,
                   const float* A, std::int64_t lda, const float* B, std::int64_t ldb, float beta, float* C,
                   std::int64_t ldc, const program::Band& nothing);

// The same for narrow matrices, with f32 sums and an f32 C. bf16 uses the processor's instructions
// for it, see bf16_gemm.h. `nothing` may be null.
void narrow_gemm(Transpose a, Transpose b, std::int64_t m, std::int64_t n, std::int64_t k, const Bf16* A,
                 std::int64_t lda, const Bf16* B, std::int64_t ldb, float beta, float* C, std::int64_t ldc,
                 const program::Band* nothing);
void narrow_gemm(Transpose a, Transpose b, std::int64_t m, std::int64_t n, std::int64_t k, const F16* A,
                 std::int64_t lda, const F16* B, std::int64_t ldb, float beta, float* C, std::int64_t ldc,
                 const program::Band* nothing);

// Widens while packing: bitwise equal to portable_gemm on the widened operands.
void widened_gemm(Transpose a, Transpose b, std::int64_t m, std::int64_t n, std::int64_t k, const Bf16* A,
                  std::int64_t lda, const Bf16* B, std::int64_t ldb, float beta, float* C, std::int64_t ldc,
                  const program::Band* nothing);

}  // namespace weft::device::cpu
