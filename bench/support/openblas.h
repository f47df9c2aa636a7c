// bench/support/openblas.h -- OpenBLAS itself, to be measured against, where the build has it.
#pragma once
#include <cstdint>

namespace weft::bench {

bool has_openblas();

// C = op(A) op(B), row-major and without gaps, on this many threads. Does nothing without OpenBLAS.
// The number of threads is set anew by every call, for a rank that starts sets it to one.
void openblas_gemm(int threads, bool a_transposed, bool b_transposed, std::int64_t m, std::int64_t n,
                   std::int64_t k, const float* A, const float* B, float* C);

}  // namespace weft::bench
