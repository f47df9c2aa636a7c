// A matrix as two thin factors: the error, and where it is zero.
#include "weft/plan/ops/low_rank.h"

#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "weft/plan/ops/codec.h"

namespace weft::ops {
namespace {

std::vector<float> drawn(std::int64_t count, std::uint64_t seed) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i)
    values.push_back(
        std::sin(static_cast<float>((i * 7919 + static_cast<std::int64_t>(seed) * 104729) % 10007)));
  return values;
}

std::vector<float> there_and_back(const std::vector<float>& x, MatrixShape shape, std::int64_t rank) {
  std::vector<float> factors(static_cast<std::size_t>(rank * (shape.rows + shape.columns))), back(x.size());
  low_rank_factors(x, shape, rank, factors);
  low_rank_product(factors, shape, rank, back);
  return back;
}

double length(std::span<const float> x) {
  double sum = 0;
  for (const float value : x) sum += static_cast<double>(value) * value;
  return std::sqrt(sum);
}

std::vector<float> minus(std::vector<float> a, const std::vector<float>& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] -= b[i];
  return a;
}

// A matrix of exactly that rank.
std::vector<float> of_rank(MatrixShape shape, std::int64_t rank) {
  const std::vector<float> p = drawn(shape.rows * rank, 3), q = drawn(shape.columns * rank, 5);
  std::vector<float> x(static_cast<std::size_t>(shape.rows * shape.columns));
  for (std::int64_t i = 0; i < shape.rows; ++i)
    for (std::int64_t j = 0; j < shape.columns; ++j)
      for (std::int64_t k = 0; k < rank; ++k)
        x[static_cast<std::size_t>(i * shape.columns + j)] +=
            p[static_cast<std::size_t>(i * rank + k)] * q[static_cast<std::size_t>(j * rank + k)];
  return x;
}

TEST(LowRank, IsExactForAMatrixOfThatRank) {
  for (const MatrixShape shape : {MatrixShape{40, 30}, {7, 61}, {33, 5}, {1, 9}, {9, 1}})
    for (const std::int64_t rank : {1, 2, 4}) {
      const std::vector<float> x = of_rank(shape, std::min({rank, shape.rows, shape.columns}));
      EXPECT_LT(length(minus(x, there_and_back(x, shape, rank))), 1e-4 * length(x))
          << shape.rows << " x " << shape.columns << ", " << rank;
    }
}

TEST(LowRank, NoRowErrorExceedsItsNorm) {
  const MatrixShape shape{24, 17};
  const std::vector<float> x = drawn(24 * 17, 1);
  double before = length(x);
  for (const std::int64_t rank : {1, 2, 4, 8}) {
    const std::vector<float> lost = minus(x, there_and_back(x, shape, rank));
    for (std::size_t i = 0; i < 24; ++i)
      EXPECT_LE(length(std::span(lost).subspan(17 * i, 17)),
                1.0001 * length(std::span(x).subspan(17 * i, 17)));
    EXPECT_LT(length(lost), before) << "a higher rank loses less";
    before = length(lost);
  }
}

TEST(LowRank, SupportsAnyMagnitudeAndPreservesNaN) {
  const MatrixShape shape{6, 5};
  for (const float scale : {1e-30f, 1e30f}) {
    std::vector<float> x = of_rank(shape, 1);
    for (float& value : x) value *= scale;
    const std::vector<float> back = there_and_back(x, shape, 1);
    for (std::size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(back[i], x[i], 1e-4 * scale) << scale;
  }
  const std::vector<float> zeros(30);
  EXPECT_EQ(there_and_back(zeros, shape, 2), zeros);
  for (const float odd : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    std::vector<float> x = drawn(30, 1);
    x[7] = odd;
    for (const float value : there_and_back(x, shape, 2)) EXPECT_TRUE(std::isnan(value));
  }
}

TEST(LowRank, TheLastRowMayBeIncomplete) {
  const std::vector<float> x = drawn(4 * 9 - 3, 2);
  const std::vector<float> back = there_and_back(x, {4, 9}, 4);
  EXPECT_LT(length(minus(x, back)), 1e-4 * length(x));
}

// k (M + N) < M N, from Project Adam: at rank 3000, the factors of a matrix of 10,000 x 1000 are
// larger than the matrix.
TEST(LowRank, CountsTheBytesOfTheFactors) {
  const Codec adam{CodecKind::low_rank, 1000, 3000};
  EXPECT_EQ(encoded_bytes(adam, 10'000'000), 4 * 33'000'000);
  EXPECT_EQ(encoded_bytes({CodecKind::low_rank, 1000, 4}, 10'000'000), 4 * 4 * 11'000);
}

}  // namespace
}  // namespace weft::ops
