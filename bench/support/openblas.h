// bench/support/openblas.h -- direct calls of OpenBLAS for comparison, if the build has it.
#pragma once
#include <cstdint>

namespace weft::bench {

bool has_openblas();

// C = op(A) op(B), row-major and contiguous, on this many threads. Does nothing without OpenBLAS.
// Sets the number of threads in every call, since starting a rank sets it to one.
void openblas_gemm(int threads, bool a_transposed, bool b_transposed, std::int64_t m, std::int64_t n,
                   std::int64_t k, const float* A, const float* B, float* C);

}  // namespace weft::bench
