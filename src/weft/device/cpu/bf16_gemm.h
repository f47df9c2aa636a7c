// weft/device/cpu/bf16_gemm.h -- bf16 matrix products with the processor's bf16 instructions.
//
//   amx       tiles of 16 x 16 sums, 32 products each per instruction    tdpbf16ps
//   avx512    vectors of 16 sums, two products each                      vdpbf16ps
//   widened   f32 arithmetic on operands widened during packing: every processor
//
// Products are exact, sums are f32. The first two add the products of a pair of k one after the
// other and flush subnormals to zero. Each variant has one order of additions per element of C,
// independent of m, n and the element's position: a product computed in blocks of rows or columns
// has the bits of the whole.
#pragma once
#include <cstdint>
#include <string_view>

#include "weft/device/cpu/blas.h"

namespace weft::device::cpu {

enum class Bf16Products : std::uint8_t { widened, avx512, amx };

std::string_view name(Bf16Products way);

// Whether the processor supports it and the operating system permits it.
bool has(Bf16Products way);

// The fastest one supported, or the one that the environment variable WEFT_BF16_PRODUCTS names, if
// supported.
Bf16Products bf16_products();

// C = op(A) op(B) + beta C, computed by `way`; see blas.h. REQUIRES: has(way), beta 0 or 1.
void bf16_gemm(Bf16Products way, Transpose a, Transpose b, std::int64_t m, std::int64_t n, std::int64_t k,
               const Bf16* A, std::int64_t lda, const Bf16* B, std::int64_t ldb, float beta, float* C,
               std::int64_t ldc, const program::Band* nothing);

}  // namespace weft::device::cpu
