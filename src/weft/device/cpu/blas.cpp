#include "weft/device/cpu/blas.h"

#ifdef WEFT_HAS_OPENBLAS

#include <algorithm>
#include <initializer_list>
#include <limits>

#include "weft/device/cpu/gemm_packing.h"
#include "weft/device/cpu/instruction_set.h"
#include "weft/device/cpu/openblas.h"

namespace weft::device::cpu {
namespace {

// OpenBLAS takes sizes as int.
bool countable(std::initializer_list<std::int64_t> sizes) {
  return std::ranges::all_of(sizes,
                             [](std::int64_t size) { return size <= std::numeric_limits<int>::max(); });
}

// Measured against OpenBLAS 0.3.21 on one core. On Neoverse V1 without SVE, GFLOP/s at m = n = k:
//
//               32   64  128  256  512 1024
//   OpenBLAS     9   21   39   50   51   60
//   ours        54   64   70   75   76   76
//
// On a Xeon with AVX-512, all products of one char_gpt step: OpenBLAS 1205 ms, ours 1124 ms; with
// four processes at once 1411 ms and 1291 ms. Elsewhere OpenBLAS has tuned kernels for processors
// that ours lacks.
bool ours_is_faster() {
#if defined(__x86_64__)
  return instruction_set() == InstructionSet::avx512;
#elif defined(__aarch64__) && !defined(__ARM_FEATURE_SVE)
  return true;
#else
  return false;
#endif
}

CBLAS_TRANSPOSE flag(bool transposed) { return transposed ? CblasTrans : CblasNoTrans; }

void openblas_gemm(bool a, bool b, int m, int n, int k, float alpha, const float* A, int lda, const float* B,
                   int ldb, float beta, float* C, int ldc) {
  openblas()->sgemm(CblasRowMajor, flag(a), flag(b), m, n, k, alpha, A, lda, B, ldb, beta, C, ldc);
}
void openblas_gemm(bool a, bool b, int m, int n, int k, double alpha, const double* A, int lda,
                   const double* B, int ldb, double beta, double* C, int ldc) {
  openblas()->dgemm(CblasRowMajor, flag(a), flag(b), m, n, k, alpha, A, lda, B, ldb, beta, C, ldc);
}

void openblas_gemv(bool a, int rows, int columns, float alpha, const float* A, int lda, const float* x,
                   int x_step, float beta, float* y, int y_step) {
  openblas()->sgemv(CblasRowMajor, flag(a), rows, columns, alpha, A, lda, x, x_step, beta, y, y_step);
}
void openblas_gemv(bool a, int rows, int columns, double alpha, const double* A, int lda, const double* x,
                   int x_step, double beta, double* y, int y_step) {
  openblas()->dgemv(CblasRowMajor, flag(a), rows, columns, alpha, A, lda, x, x_step, beta, y, y_step);
}

// y = alpha * op(A) x + beta * y, with op(A) m x k.
template <class T>
void multiply_vector(bool a, int m, int k, T alpha, const T* A, int lda, const T* x, int x_step, T beta, T* y,
                     int y_step) {
  // Some OpenBLAS versions multiply y by a beta of 0, which keeps a NaN.
  if (beta == 0) {
    for (std::int64_t i = 0; i < m; ++i) y[i * y_step] = 0;
    beta = 1;
  }
  openblas_gemv(a, a ? k : m, a ? m : k, alpha, A, lda, x, x_step, beta, y, y_step);
}

template <class T>
void multiply(bool a, bool b, int m, int n, int k, T alpha, const T* A, int lda, const T* B, int ldb, T beta,
              T* C, int ldc) {
  if (n == 1)
    multiply_vector(a, m, k, alpha, A, lda, B, b ? 1 : ldb, beta, C, ldc);
  else if (m == 1)  // the transposed product
    multiply_vector(!b, n, k, alpha, B, ldb, A, a ? lda : 1, beta, C, 1);
  else
    openblas_gemm(a, b, m, n, k, alpha, A, lda, B, ldb, beta, C, ldc);
}

bool is_ours(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t lda, std::int64_t ldb,
             std::int64_t ldc) {
  const bool vector = m == 1 || n == 1;
  return m == 0 || n == 0 || k == 0 || !countable({m, n, k, lda, ldb, ldc}) ||
         (!vector && ours_is_faster()) || openblas() == nullptr;
}

template <class T>
void choose(Transpose a, Transpose b, std::int64_t m, std::int64_t n, std::int64_t k, T alpha, const T* A,
            std::int64_t lda, const T* B, std::int64_t ldb, T beta, T* C, std::int64_t ldc) {
  if (is_ours(m, n, k, lda, ldb, ldc))
    return portable_gemm(a, b, m, n, k, alpha, A, lda, B, ldb, beta, C, ldc);
  const auto count = [](std::int64_t size) { return static_cast<int>(size); };
  multiply(a == Transpose::yes, b == Transpose::yes, count(m), count(n), count(k), alpha, A, count(lda), B,
           count(ldb), beta, C, count(ldc));
}

}  // namespace

void gemm(Transpose a, Transpose b, std::int64_t m, std::int64_t n, std::int64_t k, float alpha,
          const float* A, std::int64_t lda, const float* B, std::int64_t ldb, float beta, float* C,
          std::int64_t ldc) {
  choose(a, b, m, n, k, alpha, A, lda, B, ldb, beta, C, ldc);
}
void gemm(Transpose a, Transpose b, std::int64_t m, std::int64_t n, std::int64_t k, double alpha,
          const double* A, std::int64_t lda, const double* B, std::int64_t ldb, double beta, double* C,
          std::int64_t ldc) {
  choose(a, b, m, n, k, alpha, A, lda, B, ldb, beta, C, ldc);
}

// OpenBLAS has no bands: call it for a few rows or columns at a time, with only what each block
// needs.
void gemm(Transpose a, Transpose b, std::int64_t m, std::int64_t n, std::int64_t k, float alpha,
          const float* A, std::int64_t lda, const float* B, std::int64_t ldb, float beta, float* C,
          std::int64_t ldc, const program::Band& nothing) {
  if (is_ours(m, n, k, lda, ldb, ldc))
    return portable_gemm(a, b, m, n, k, alpha, A, lda, B, ldb, beta, C, ldc, nothing);
  using program::ProductBlock, program::Range, program::Side;
  constexpr std::int64_t kPiece = 64;
  portable_gemm(a, b, m, n, 0, alpha, A, lda, B, ldb, beta, C, ldc);  // beta * C only
  const Side side = nothing.later == Side::m || nothing.earlier == Side::m ? Side::m : Side::n;
  const View<float> left(a, A, lda), right(b, B, ldb);
  ProductBlock whole{{0, m}, {0, n}, {0, k}};
  const std::int64_t end = whole[side].end;
  for (std::int64_t begin = 0; begin < end; begin += kPiece) {
    whole[side] = Range{begin, std::min(begin + kPiece, end)};
    const ProductBlock block = nothing.needed(whole);
    if (block.empty()) continue;
    choose(a, b, block.m.end - block.m.begin, block.n.end - block.n.begin, block.k.end - block.k.begin, alpha,
           left.at(block.m.begin, block.k.begin), lda, right.at(block.k.begin, block.n.begin), ldb, 1.0f,
           C + block.m.begin * ldc + block.n.begin, ldc);
  }
}

void use_one_blas_thread() {
  if (const OpenBlas* const blas = openblas()) blas->set_num_threads(1);
}

}  // namespace weft::device::cpu

#else

namespace weft::device::cpu {

void gemm(Transpose a, Transpose b, std::int64_t m, std::int64_t n, std::int64_t k, float alpha,
          const float* A, std::int64_t lda, const float* B, std::int64_t ldb, float beta, float* C,
          std::int64_t ldc) {
  portable_gemm(a, b, m, n, k, alpha, A, lda, B, ldb, beta, C, ldc);
}
void gemm(Transpose a, Transpose b, std::int64_t m, std::int64_t n, std::int64_t k, double alpha,
          const double* A, std::int64_t lda, const double* B, std::int64_t ldb, double beta, double* C,
          std::int64_t ldc) {
  portable_gemm(a, b, m, n, k, alpha, A, lda, B, ldb, beta, C, ldc);
}

void gemm(Transpose a, Transpose b, std::int64_t m, std::int64_t n, std::int64_t k, float alpha,
          const float* A, std::int64_t lda, const float* B, std::int64_t ldb, float beta, float* C,
          std::int64_t ldc, const program::Band& nothing) {
  portable_gemm(a, b, m, n, k, alpha, A, lda, B, ldb, beta, C, ldc, nothing);
}

void use_one_blas_thread() {}

}  // namespace weft::device::cpu

#endif
