#include "weft/plan/ops/low_rank.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "weft/base/hash.h"

namespace weft::ops {
namespace {

using FloatSpan = std::span<float>;
using ConstFloatSpan = std::span<const float>;

// Sums in lanes: compilers vectorize them, and the result is bitwise equal on all machines.
float dot(ConstFloatSpan a, ConstFloatSpan b) {
  std::array<float, 16> sums = {};
  std::size_t i = 0;
  for (; i + sums.size() <= a.size(); i += sums.size())
    for (std::size_t lane = 0; lane < sums.size(); ++lane) sums[lane] += a[i + lane] * b[i + lane];
  for (; i < a.size(); ++i) sums[0] += a[i] * b[i];
  return std::accumulate(sums.begin(), sums.end(), 0.0f);
}

void add_times(FloatSpan to, ConstFloatSpan from, float by) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] += by * from[i];
}

// Makes `count` consecutive vectors orthonormal. A vector in the span of earlier ones becomes zero.
void make_orthonormal(FloatSpan vectors, std::int64_t count) {
  const std::size_t length = vectors.size() / static_cast<std::size_t>(count);
  constexpr float kSpanned = 1e-5f;
  for (std::size_t k = 0; k < static_cast<std::size_t>(count); ++k) {
    const FloatSpan mine = vectors.subspan(k * length, length);
    const float before = std::sqrt(dot(mine, mine));
    // Subtract the projections twice, since rounding leaves a remainder the first time.
    for (int time = 0; time < 2; ++time)
      for (std::size_t other = 0; other < k; ++other) {
        const FloatSpan theirs = vectors.subspan(other * length, length);
        add_times(mine, theirs, -dot(mine, theirs));
      }
    const float after = std::sqrt(dot(mine, mine));
    const float by = after > kSpanned * before && after > std::numeric_limits<float>::min() ? 1 / after : 0;
    for (float& value : mine) value *= by;
  }
}

class LowRankMatrix {
 public:
  LowRankMatrix(ConstFloatSpan values, MatrixShape shape)
      : columns_(static_cast<std::size_t>(shape.columns)) {
    if (values.size() == static_cast<std::size_t>(shape.rows * shape.columns)) {
      values_ = values;
      return;
    }
    padded_.assign(values.begin(), values.end());
    padded_.resize(static_cast<std::size_t>(shape.rows * shape.columns));
    values_ = padded_;
  }

  // p[k][i] = by * sum over j of x[i][j] q[k][j]
  void times(ConstFloatSpan q, float by, FloatSpan p, std::int64_t rank) const {
    const std::size_t rows = p.size() / static_cast<std::size_t>(rank);
    for (std::size_t i = 0; i < rows; ++i)
      for (std::size_t k = 0; k < static_cast<std::size_t>(rank); ++k)
        p[k * rows + i] = by * dot(row(i), q.subspan(k * columns_, columns_));
  }

  // q[k][j] = by * sum over i of x[i][j] p[k][i]
  void transposed_times(ConstFloatSpan p, float by, FloatSpan q, std::int64_t rank) const {
    const std::size_t rows = p.size() / static_cast<std::size_t>(rank);
    std::ranges::fill(q, 0.0f);
    for (std::size_t i = 0; i < rows; ++i)
      for (std::size_t k = 0; k < static_cast<std::size_t>(rank); ++k)
        add_times(q.subspan(k * columns_, columns_), row(i), by * p[k * rows + i]);
  }

 private:
  ConstFloatSpan row(std::size_t i) const { return values_.subspan(i * columns_, columns_); }

  std::size_t columns_;
  std::vector<float> padded_;
  ConstFloatSpan values_;
};

}  // namespace

void low_rank_factors(std::span<const float> values, MatrixShape shape, std::int64_t rank,
                      std::span<float> factors) {
  const FloatSpan p = factors.first(static_cast<std::size_t>(rank * shape.rows)),
                  q = factors.subspan(p.size(), static_cast<std::size_t>(rank * shape.columns));
  float largest = 0;
  for (const float value : values) {
    if (!std::isfinite(value)) {
      std::ranges::fill(factors, std::numeric_limits<float>::quiet_NaN());
      return;
    }
    largest = std::max(largest, std::fabs(value));
  }
  // Scale first: squares of very large or very small numbers would overflow or underflow.
  const float by = largest > std::numeric_limits<float>::min() ? 1 / largest : 0;
  for (std::size_t i = 0; i < q.size(); ++i) q[i] = static_cast<float>(mix(i + 1) >> 40) * 0x1p-23f - 1;
  make_orthonormal(q, rank);
  const LowRankMatrix matrix(values, shape);
  for (int iteration = 0; iteration < kPowerIterations; ++iteration) {
    matrix.times(q, by, p, rank);
    make_orthonormal(p, rank);
    matrix.transposed_times(p, by, q, rank);
    make_orthonormal(q, rank);
  }
  matrix.times(q, 1, p, rank);
}

void low_rank_product(std::span<const float> factors, MatrixShape shape, std::int64_t rank,
                      std::span<float> values) {
  const auto rows = static_cast<std::size_t>(shape.rows), columns = static_cast<std::size_t>(shape.columns);
  const ConstFloatSpan p = factors.first(static_cast<std::size_t>(rank) * rows),
                       q = factors.subspan(p.size());
  std::ranges::fill(values, 0.0f);
  for (std::size_t i = 0; i < rows && i * columns < values.size(); ++i) {
    const FloatSpan row = values.subspan(i * columns, std::min(columns, values.size() - i * columns));
    for (std::size_t k = 0; k < static_cast<std::size_t>(rank); ++k)
      add_times(row, q.subspan(k * columns, row.size()), p[k * rows + i]);
  }
}

}  // namespace weft::ops
