// bf16 matrix products by every method that the processor supports, compared with their definition.
#include "weft/device/cpu/bf16_gemm.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "weft/base/random.h"

namespace weft::device::cpu {
namespace {

using program::Band;
using program::Side;

constexpr Bf16Products kWays[] = {Bf16Products::widened, Bf16Products::avx512, Bf16Products::amx};
constexpr Transpose kBoth[] = {Transpose::no, Transpose::yes};

// One, less than a tile, just more than one, whole tiles, and more than is packed at a time for
// either operand.
constexpr std::int64_t kShapes[][3] = {{1, 1, 1},    {7, 33, 5},   {17, 15, 33},  {32, 32, 64},
                                       {40, 800, 3}, {300, 9, 40}, {33, 50, 1100}};

Bf16 bf16(float x) {
  Bf16 made;
  narrow(plan::DType::bf16, &x, reinterpret_cast<std::byte*>(&made), 1);
  return made;
}

// Rows have a few elements of padding, which are NaN.
struct Case {
  Case(Transpose transpose_a, Transpose transpose_b, const std::int64_t (&shape)[3], Random& random,
       bool whole)
      : a(transpose_a), b(transpose_b), m(shape[0]), n(shape[1]), k(shape[2]) {
    const auto draw = [&](std::vector<Bf16>& to, std::int64_t rows, std::int64_t columns, std::int64_t step) {
      to.assign(static_cast<std::size_t>(rows * step), bf16(std::numeric_limits<float>::quiet_NaN()));
      for (std::int64_t row = 0; row < rows; ++row)
        for (std::int64_t column = 0; column < columns; ++column)
          to[static_cast<std::size_t>(row * step + column)] =
              bf16(static_cast<float>(random.between(-9, 9)) * (whole ? 1.0f : 0.3f));
    };
    const bool ta = a == Transpose::yes, tb = b == Transpose::yes;
    lda = (ta ? m : k) + 3, ldb = (tb ? k : n) + 5;
    draw(A, ta ? k : m, ta ? m : k, lda);
    draw(B, tb ? n : k, tb ? k : n, ldb);
  }

  Bf16& left(std::int64_t i, std::int64_t d) {
    return A[static_cast<std::size_t>(a == Transpose::yes ? d * lda + i : i * lda + d)];
  }
  Bf16& right(std::int64_t d, std::int64_t j) {
    return B[static_cast<std::size_t>(b == Transpose::yes ? j * ldb + d : d * ldb + j)];
  }
  double definition(std::int64_t i, std::int64_t j) {
    double sum = 0;
    for (std::int64_t d = 0; d < k; ++d) sum += double{widened(left(i, d))} * double{widened(right(d, j))};
    return sum;
  }

  std::vector<float> multiply(Bf16Products way, float beta, const Band* nothing = nullptr) {
    std::vector<float> C(static_cast<std::size_t>(m * (n + 2)),
                         beta == 0 ? std::numeric_limits<float>::quiet_NaN() : 2.0f);
    bf16_gemm(way, a, b, m, n, k, A.data(), lda, B.data(), ldb, beta, C.data(), n + 2, nothing);
    return C;
  }

  Transpose a, b;
  std::int64_t m, n, k, lda, ldb;
  std::vector<Bf16> A, B;
};

template <class Check>
void for_each_case(bool whole, const Check& check) {
  Random random(11);
  for (const Bf16Products way : kWays) {
    if (!has(way)) continue;
    for (const auto& shape : kShapes)
      for (const Transpose a : kBoth)
        for (const Transpose b : kBoth) {
          Case of(a, b, shape, random, whole);
          check(way, of);
          if (testing::Test::HasFatalFailure()) return;
        }
  }
}

// Sums of integers are exact in f32, in any order.
TEST(Bf16Gemm, IntegersAreExact) {
  for_each_case(true, [](Bf16Products way, Case& of) {
    for (const float beta : {0.0f, 1.0f}) {
      const std::vector<float> C = of.multiply(way, beta);
      for (std::int64_t i = 0; i < of.m; ++i)
        for (std::int64_t j = 0; j < of.n + 2; ++j) {
          const float found = C[static_cast<std::size_t>(i * (of.n + 2) + j)];
          if (j >= of.n)
            ASSERT_TRUE(beta == 0 ? std::isnan(found) : found == 2) << "past the end of a row";
          else
            ASSERT_EQ(static_cast<double>(found), of.definition(i, j) + 2 * double{beta})
                << name(way) << " " << of.m << " x " << of.n << " x " << of.k << " at " << i << ", " << j;
        }
    }
  });
}

// Blocks of rows and columns that tasks compute separately are bitwise equal to the whole, and runs
// are repeatable.
TEST(Bf16Gemm, BlocksAreBitwiseEqualToTheWhole) {
  for_each_case(false, [](Bf16Products way, Case& of) {
    const std::vector<float> whole = of.multiply(way, 0);
    std::vector<float> C(whole.size());
    const std::int64_t cut_m = of.m / 3, cut_n = of.n / 2;
    for (const auto& [m0, m1] : {std::pair{std::int64_t{0}, cut_m}, {cut_m, of.m}})
      for (const auto& [n0, n1] : {std::pair{std::int64_t{0}, cut_n}, {cut_n, of.n}})
        if (m1 > m0 && n1 > n0)
          bf16_gemm(way, of.a, of.b, m1 - m0, n1 - n0, of.k, &of.left(m0, 0), of.lda, &of.right(0, n0),
                    of.ldb, 0, C.data() + m0 * (of.n + 2) + n0, of.n + 2, nullptr);
    for (std::int64_t i = 0; i < of.m; ++i)
      for (std::int64_t j = 0; j < of.n; ++j) {
        const auto at = static_cast<std::size_t>(i * (of.n + 2) + j);
        ASSERT_EQ(C[at], whole[at]) << name(way) << " at " << i << ", " << j;
        ASSERT_NEAR(static_cast<double>(C[at]), of.definition(i, j),
                    1e-5 * static_cast<double>(of.k) + 1e-5 * std::fabs(of.definition(i, j)));
      }
  });
}

TEST(Bf16Gemm, SkipsABand) {
  for_each_case(true, [](Bf16Products way, Case& of) {
    const Band of_c{Side::n, Side::m, 4}, of_k{Side::k, Side::m, 4};
    const std::vector<float> seen = of.multiply(way, 1, &of_c), all = of.multiply(way, 1);
    for (std::int64_t i = 0; i < of.m; ++i)
      for (std::int64_t d = i + 5; d < of.k; ++d) of.left(i, d) = bf16(0);
    const std::vector<float> short_sums = of.multiply(way, 0, &of_k), sums = of.multiply(way, 0);
    for (std::int64_t i = 0; i < of.m; ++i)
      for (std::int64_t j = 0; j < of.n; ++j) {
        const auto at = static_cast<std::size_t>(i * (of.n + 2) + j);
        ASSERT_EQ(short_sums[at], sums[at]) << name(way) << " at " << i << ", " << j;
        if (j > i + 4)
          ASSERT_TRUE(std::isfinite(seen[at])) << name(way) << " at " << i << ", " << j;
        else
          ASSERT_EQ(seen[at], all[at]) << name(way) << " at " << i << ", " << j;
      }
  });
}

// A block entirely inside the band is not computed at all: infinities do not reach it.
TEST(Bf16Gemm, ABlockInsideTheBandIsZero) {
  constexpr std::int64_t n = 96;
  const std::vector<Bf16> A(n * n, bf16(1));
  std::vector<Bf16> B = A;
  std::fill(B.begin() + 64 * n, B.end(), bf16(std::numeric_limits<float>::infinity()));
  const Band band{Side::n, Side::m, 0};
  for (const Bf16Products way : kWays) {
    if (!has(way)) continue;
    std::vector<float> C(n * n, 7);
    bf16_gemm(way, Transpose::no, Transpose::yes, n, n, n, A.data(), n, B.data(), n, 0, C.data(), n, &band);
    EXPECT_EQ(C[n - 1], 0) << name(way);
    EXPECT_EQ(C[0], static_cast<float>(n)) << name(way);
    EXPECT_EQ(C[n * n - 1], std::numeric_limits<float>::infinity()) << name(way);
  }
}

TEST(Bf16Gemm, AnEmptySumIsZero) {
  for (const Bf16Products way : kWays) {
    if (!has(way)) continue;
    float C[2] = {5, 5};
    bf16_gemm(way, Transpose::no, Transpose::no, 1, 2, 0, nullptr, 1, nullptr, 2, 0, C, 2, nullptr);
    EXPECT_EQ(C[0], 0) << name(way);
    EXPECT_EQ(C[1], 0) << name(way);
  }
}

}  // namespace
}  // namespace weft::device::cpu
