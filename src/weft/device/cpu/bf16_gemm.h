// weft/device/cpu/bf16_gemm.h -- products of bf16 by the instructions that processors have for them.
//
//   amx       tiles of 16 x 16 sums, 32 products each an instruction     tdpbf16ps
//   avx512    vectors of 16 sums, two products each                      vdpbf16ps
//   widened   f32 arithmetic on operands that are widened in packing: every processor
//
// Products are exact, sums are f32. The first two add the two products of a pair of k one after the other and take
// what is too small for a normal number for zero. Each of the three has one order of additions for every place in C,
// whatever m, n and its place are: a product computed in pieces of rows or columns has the bits of the whole.
#pragma once
#include <cstdint>
#include <string_view>

#include "weft/device/cpu/blas.h"

namespace weft::device::cpu {

enum class Bf16Products : std::uint8_t { widened, avx512, amx };

std::string_view name(Bf16Products way);

// Whether this processor can, and the system lets it.
bool has(Bf16Products way);

// The quickest of those that it has, or the one that the variable WEFT_BF16_PRODUCTS names, where it has that.
Bf16Products bf16_products();

// C = op(A) op(B) + beta C, by `way`; see blas.h. REQUIRES: has(way), beta 0 or 1.
void bf16_gemm(Bf16Products way, Transpose a, Transpose b, std::int64_t m, std::int64_t n, std::int64_t k,
               const Bf16* A, std::int64_t lda, const Bf16* B, std::int64_t ldb, float beta, float* C,
               std::int64_t ldc, const program::Band* nothing);

}  // namespace weft::device::cpu
