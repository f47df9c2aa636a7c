#include "support/openblas.h"

#ifdef WEFT_HAS_OPENBLAS
#include <cblas.h>
#endif

namespace weft::bench {

#ifdef WEFT_HAS_OPENBLAS

bool has_openblas() { return true; }

void openblas_gemm(int threads, bool a_transposed, bool b_transposed, std::int64_t m, std::int64_t n,
                   std::int64_t k, const float* A, const float* B, float* C) {
  const auto flag = [](bool transposed) { return transposed ? CblasTrans : CblasNoTrans; };
  const auto count = [](std::int64_t size) { return static_cast<int>(size); };
  openblas_set_num_threads(threads);
  cblas_sgemm(CblasRowMajor, flag(a_transposed), flag(b_transposed), count(m), count(n), count(k), 1, A,
              count(a_transposed ? m : k), B, count(b_transposed ? k : n), 0, C, count(n));
}

#else

bool has_openblas() { return false; }
void openblas_gemm(int, bool, bool, std::int64_t, std::int64_t, std::int64_t, const float*, const float*,
                   float*) {}

#endif

}  // namespace weft::bench
