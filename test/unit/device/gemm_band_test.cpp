// Products without the band that a mask sets to zero: the rest is bitwise equal to the whole
// product.
#include <tuple>

#include "kernels_case.h"
#include "weft/device/cpu/blas.h"

namespace weft::device::cpu {
namespace {

using program::Band;
using program::ProductBlock;
using program::Side;

constexpr Side kSides[] = {Side::m, Side::n, Side::k};

// Odd sizes, whole tiles, more than one block of rows, of columns and of depth.
constexpr std::tuple<std::int64_t, std::int64_t, std::int64_t> kSizes[] = {
    {1, 1, 1}, {7, 9, 5}, {9, 13, 17}, {48, 48, 24}, {131, 70, 9}, {20, 800, 3}, {9, 14, 801}};

bool is_nothing(const Band& band, std::int64_t i, std::int64_t j, std::int64_t d) {
  const auto at = [&](Side side) { return side == Side::m ? i : side == Side::n ? j : d; };
  return at(band.later) > at(band.earlier) + band.offset;
}

struct Matrices {
  Transpose a, b;
  std::int64_t m, n, k;
  std::vector<float> A, B;

  std::int64_t lda() const { return a == Transpose::no ? k : m; }
  std::int64_t ldb() const { return b == Transpose::no ? n : k; }
  float& left(std::int64_t i, std::int64_t d) {
    return A[static_cast<std::size_t>(a == Transpose::no ? i * k + d : d * m + i)];
  }
  float& right(std::int64_t d, std::int64_t j) {
    return B[static_cast<std::size_t>(b == Transpose::no ? d * n + j : j * k + d)];
  }
};

// Zeros where the band requires them.
Matrices masked_matrices(Transpose a, Transpose b, std::int64_t m, std::int64_t n, std::int64_t k,
                         const Band& band, Random& random) {
  Matrices made{a, b, m, n, k, random_floats(m * k, random), random_floats(k * n, random)};
  const bool has_m = band.later == Side::m || band.earlier == Side::m;
  const bool has_n = band.later == Side::n || band.earlier == Side::n;
  for (std::int64_t d = 0; d < k && !(has_m && has_n); ++d) {
    for (std::int64_t i = 0; i < m && has_m; ++i)
      if (is_nothing(band, i, 0, d)) made.left(i, d) = 0;
    for (std::int64_t j = 0; j < n && has_n; ++j)
      if (is_nothing(band, 0, j, d)) made.right(d, j) = 0;
  }
  return made;
}

template <class Check>
void for_each_case(const Check& check) {
  Random random(7);
  for (const auto& [m, n, k] : kSizes)
    for (const Transpose a : {Transpose::no, Transpose::yes})
      for (const Transpose b : {Transpose::no, Transpose::yes})
        for (const Side later : kSides)
          for (const Side earlier : kSides) {
            if (later == earlier) continue;
            for (const std::int64_t offset : {-9, -1, 0, 1000}) {
              const Band band{later, earlier, offset};
              check(masked_matrices(a, b, m, n, k, band, random), band, random.below(2) == 0 ? 0.0f : 1.0f);
              if (testing::Test::HasFatalFailure()) return;
            }
          }
}

TEST(GemmBand, TheRestIsBitwiseEqualToTheWhole) {
  for_each_case([](const Matrices& x, const Band& band, float beta) {
    auto whole =
        beta == 0 ? unwritten(x.m * x.n) : std::vector<float>(static_cast<std::size_t>(x.m * x.n), 2);
    auto without = whole;
    portable_gemm(x.a, x.b, x.m, x.n, x.k, 0.5f, x.A.data(), x.lda(), x.B.data(), x.ldb(), beta, whole.data(),
                  x.n);
    portable_gemm(x.a, x.b, x.m, x.n, x.k, 0.5f, x.A.data(), x.lda(), x.B.data(), x.ldb(), beta,
                  without.data(), x.n, band);
    const bool of_c = band.later != Side::k && band.earlier != Side::k;
    for (std::int64_t i = 0; i < x.m; ++i)
      for (std::int64_t j = 0; j < x.n; ++j) {
        const auto at = static_cast<std::size_t>(i * x.n + j);
        if (of_c && is_nothing(band, i, j, 0)) {
          ASSERT_TRUE(std::isfinite(without[at])) << "unchanged at " << i << ", " << j;
        } else {
          ASSERT_EQ(without[at], whole[at])
              << x.m << " x " << x.n << " x " << x.k << " at " << i << ", " << j << " offset " << band.offset;
        }
      }
  });
}

TEST(GemmBand, GemmAgreesForAnyImplementation) {
  for_each_case([](const Matrices& x, const Band& band, float beta) {
    auto whole =
        beta == 0 ? unwritten(x.m * x.n) : std::vector<float>(static_cast<std::size_t>(x.m * x.n), 2);
    auto without = whole;
    gemm(x.a, x.b, x.m, x.n, x.k, 1, x.A.data(), x.lda(), x.B.data(), x.ldb(), beta, whole.data(), x.n);
    gemm(x.a, x.b, x.m, x.n, x.k, 1, x.A.data(), x.lda(), x.B.data(), x.ldb(), beta, without.data(), x.n,
         band);
    const bool of_c = band.later != Side::k && band.earlier != Side::k;
    for (std::int64_t i = 0; i < x.m; ++i)
      for (std::int64_t j = 0; j < x.n; ++j) {
        const auto at = static_cast<std::size_t>(i * x.n + j);
        if (of_c && is_nothing(band, i, j, 0)) continue;
        ASSERT_NEAR(without[at], whole[at], 1e-4);
      }
  });
}

// A block entirely inside the band is not computed at all: NaN and infinity in the operands do not
// reach it.
TEST(GemmBand, ABlockInsideTheBandIsZero) {
  const std::int64_t n = 96;
  std::vector<float> A(n * n, 1), B(n * n, 1), C = unwritten(n * n);
  std::fill(B.begin() + 64 * n, B.end(), std::numeric_limits<float>::infinity());
  portable_gemm(Transpose::no, Transpose::yes, n, n, n, 1, A.data(), n, B.data(), n, 0, C.data(), n,
                Band{Side::n, Side::m, 0});
  EXPECT_EQ(C[n - 1], 0);
  EXPECT_EQ(C[63], 0);
  EXPECT_EQ(C[0], static_cast<float>(n));
  EXPECT_EQ(C[(n - 1) * n + n - 1], std::numeric_limits<float>::infinity());
}

TEST(GemmBand, BlocksOfAProductShiftTheBand) {
  const Band band{Side::n, Side::m, 3};
  EXPECT_EQ(band.from(10, 0).offset, 13);
  EXPECT_EQ(band.from(10, 4).offset, 9);
  EXPECT_EQ((Band{Side::m, Side::k, 3}.from(10, 4).offset), -7);
  const ProductBlock block = band.needed({{0, 8}, {4, 40}, {0, 5}});
  EXPECT_EQ(block.n, (program::Range{4, 11}));
  EXPECT_EQ(block.m, (program::Range{1, 8}));
  EXPECT_EQ(block.k, (program::Range{0, 5}));
}

}  // namespace
}  // namespace weft::device::cpu
