// weft/plan/ops/low_rank.h -- low-rank gradient compression, as in PowerSGD and Project Adam.
//
//   X [rows x columns]  ~  P Q'      P [rows x rank] = X Q,  Q [columns x rank] is orthonormal
//
// Q approximates the leading right singular vectors of X by power iterations. They start from a
// fixed matrix per shape, so equal numbers give equal codes. Each row of X is projected on the span
// of Q, so its error is at most its norm. rank * (rows + columns) numbers replace rows * columns,
// which is fewer only if rank < rows * columns / (rows + columns).
#pragma once
#include <cstdint>
#include <span>

namespace weft::ops {

struct MatrixShape {
  std::int64_t rows = 0, columns = 0;
};

// Each power iteration reads the matrix twice; computing P reads it once more.
inline constexpr int kPowerIterations = 2;

// `factors`: rank * (rows + columns) numbers, P and then Q, both column-major. All are NaN if a
// number is not finite. `values` may be shorter than the matrix: the rest is zero.
void low_rank_factors(std::span<const float> values, MatrixShape shape, std::int64_t rank,
                      std::span<float> factors);
// Computes P Q' for as many numbers as `values` has.
void low_rank_product(std::span<const float> factors, MatrixShape shape, std::int64_t rank,
                      std::span<float> values);

}  // namespace weft::ops
