// weft/plan/ops/low_rank.h -- a matrix as two thin ones: what PowerSGD and Project Adam send of a gradient.
//
//   X [rows x columns]  ~  P Q'      P [rows x rank] = X Q,  Q [columns x rank], whose columns are orthonormal
//
// Q comes near the directions in which X is longest by some power iterations from a start that is the same for all
// matrices of a shape, so that the same numbers give the same codes. A row of X is projected on what Q spans: what is
// lost of it is no longer than the row. rank * (rows + columns) numbers take the place of rows * columns, which is
// fewer only where rank < rows * columns / (rows + columns).
#pragma once
#include <cstdint>
#include <span>

namespace weft::ops {

struct MatrixShape {
  std::int64_t rows = 0, columns = 0;
};

// Each of the power iterations reads the matrix twice, and P once more.
inline constexpr int kPowerIterations = 2;

// `factors`: rank * (rows + columns) numbers, P and then Q, each of them column by column. All are NaN where a number is
// not finite. `values` may be shorter than the matrix: the rest is zero.
void low_rank_factors(std::span<const float> values, MatrixShape shape, std::int64_t rank,
                      std::span<float> factors);
// The same the other way, as far as `values` goes.
void low_rank_product(std::span<const float> factors, MatrixShape shape, std::int64_t rank,
                      std::span<float> values);

}  // namespace weft::ops
