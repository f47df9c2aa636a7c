// Matrix products compared with three plain loops, and portable_gemm's guarantee for blocks.
#include <cstdlib>
#include <filesystem>
#include <tuple>

#include "kernels_case.h"
#include "weft/device/cpu/blas.h"

namespace weft::device::cpu {
namespace {

template <class T>
std::vector<T> random_matrix(std::int64_t n, Random& random) {
  std::vector<T> values(static_cast<std::size_t>(n));
  for (T& value : values) value = static_cast<T>(random.uniform() * 2 - 1);
  return values;
}

template <class T>
using Product = void (*)(Transpose, Transpose, std::int64_t, std::int64_t, std::int64_t, T, const T*,
                         std::int64_t, const T*, std::int64_t, T, T*, std::int64_t);

// Rows have a few elements of padding, which must stay unchanged.
template <class T>
void expect_product(Product<T> product, Transpose a, Transpose b, std::int64_t m, std::int64_t n,
                    std::int64_t k, T alpha, T beta, Random& random) {
  const std::int64_t lda = (a == Transpose::no ? k : m) + 3, ldb = (b == Transpose::no ? n : k) + 1,
                     ldc = n + 2;
  const auto A = random_matrix<T>((a == Transpose::no ? m : k) * lda, random);
  const auto B = random_matrix<T>((b == Transpose::no ? k : n) * ldb, random);
  auto C = random_matrix<T>(m * ldc, random);
  const auto before = C;
  if (beta == 0)
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t j = 0; j < n; ++j) C[i * ldc + j] = std::numeric_limits<T>::quiet_NaN();
  product(a, b, m, n, k, alpha, A.data(), lda, B.data(), ldb, beta, C.data(), ldc);
  const double tolerance = std::is_same_v<T, float> ? 1e-6 * static_cast<double>(k + 10) : 1e-12;
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (std::int64_t d = 0; d < k; ++d)
        sum += static_cast<double>(a == Transpose::no ? A[i * lda + d] : A[d * lda + i]) *
               static_cast<double>(b == Transpose::no ? B[d * ldb + j] : B[j * ldb + d]);
      sum *= static_cast<double>(alpha);
      if (beta != 0) sum += static_cast<double>(beta) * static_cast<double>(before[i * ldc + j]);
      ASSERT_NEAR(static_cast<double>(C[i * ldc + j]), sum, tolerance)
          << m << " x " << n << " x " << k << " at " << i << ", " << j;
    }
    for (std::int64_t j = n; j < ldc; ++j) ASSERT_EQ(C[i * ldc + j], before[i * ldc + j]);
  }
}

constexpr std::tuple<std::int64_t, std::int64_t, std::int64_t> kSizes[] = {
    {1, 1, 1},
    {1, 7, 5},
    {7, 1, 5},
    {3, 5, 0},
    {8, 12, 4},
    {9, 13, 17},
    {16, 24, 9},
    {17, 3, 31},
    {64, 64, 64},
    {5, 200, 33},
    {130, 9, 7},
    {33, 70, 300},
    {130, 194, 3},
    // more than one block of columns, of depth
    {19, 1000, 2},
    {9, 13, 901}};

template <class T>
void expect_all(Product<T> product) {
  Random random(3);
  for (const auto& [m, n, k] : kSizes)
    for (const Transpose a : {Transpose::no, Transpose::yes})
      for (const Transpose b : {Transpose::no, Transpose::yes})
        for (const auto& [alpha, beta] : {std::pair{1.0, 0.0}, {1.0, 1.0}, {-0.5, 2.0}})
          expect_product<T>(product, a, b, m, n, k, static_cast<T>(alpha), static_cast<T>(beta), random);
}

TEST(KernelsBlas, GemmMultipliesFloats) { expect_all<float>(gemm); }
TEST(KernelsBlas, GemmMultipliesDoubles) { expect_all<double>(gemm); }
TEST(KernelsBlas, PortableGemmMultipliesFloats) { expect_all<float>(portable_gemm); }
TEST(KernelsBlas, PortableGemmMultipliesDoubles) { expect_all<double>(portable_gemm); }

// The remainder beside whole tiles uses other kernels.
TEST(KernelsBlas, PortableGemmMultipliesAnyWidth) {
  Random random(5);
  for (std::int64_t n = 1; n <= 100; ++n)
    for (const Transpose b : {Transpose::no, Transpose::yes})
      for (const std::int64_t m : {5, 18}) {
        expect_product<float>(portable_gemm, Transpose::no, b, m, n, 6, 1, 1, random);
        expect_product<double>(portable_gemm, Transpose::yes, b, m, n, 6, 1, 0, random);
      }
}

TEST(KernelsBlas, EmptyProductsChangeNothing) {
  float c = 5;
  for (const auto product : {static_cast<Product<float>>(gemm), static_cast<Product<float>>(portable_gemm)}) {
    product(Transpose::no, Transpose::no, 0, 3, 4, 1, nullptr, 4, nullptr, 3, 0, &c, 3);
    product(Transpose::no, Transpose::no, 3, 0, 4, 1, nullptr, 4, nullptr, 1, 0, &c, 1);
  }
  EXPECT_EQ(c, 5);
}

TEST(KernelsBlas, BlocksAreBitwiseEqualToTheWhole) {
  Random random(4);
  const std::int64_t m = 83, n = 790, k = 801;
  const auto A = random_floats(m * k, random), B = random_floats(k * n, random);
  for (const Transpose b : {Transpose::no, Transpose::yes}) {
    const std::int64_t ldb = b == Transpose::no ? n : k;
    auto whole = unwritten(m * n), rows = whole, columns = whole;
    const auto product = [&](std::int64_t row, std::int64_t high, std::int64_t column, std::int64_t wide,
                             std::vector<float>& C) {
      portable_gemm(Transpose::no, b, high, wide, k, 1.0f, A.data() + row * k, k,
                    B.data() + column * (b == Transpose::no ? 1 : ldb), ldb, 0.0f,
                    C.data() + row * n + column, n);
    };
    product(0, m, 0, n, whole);
    in_pieces(m, random,
              [&](std::int64_t begin, std::int64_t end) { product(begin, end - begin, 0, n, rows); });
    in_pieces(n, random,
              [&](std::int64_t begin, std::int64_t end) { product(0, m, begin, end - begin, columns); });
    EXPECT_TRUE(same_bits(whole, rows));
    EXPECT_TRUE(same_bits(whole, columns));
  }
}

// Each suite is a process, so nothing was multiplied before.
TEST(KernelsBlasAlone, ProductsStartNoThreadsAndKeepTheEnvironment) {
  const auto threads = [] {
    const std::filesystem::directory_iterator tasks("/proc/self/task");
    return std::distance(begin(tasks), end(tasks));
  };
  if (std::getenv("OPENBLAS_NUM_THREADS") != nullptr) GTEST_SKIP() << "the environment sets it";
  const auto before = threads();
  const std::vector<float> A(100 * 100, 1), x(100, 2);
  std::vector<float> y(100);
  gemm(Transpose::no, Transpose::no, 100, 1, 100, 1.0f, A.data(), 100, x.data(), 1, 0.0f, y.data(), 1);
  EXPECT_EQ(y, std::vector<float>(100, 200));
  EXPECT_EQ(threads(), before);
  EXPECT_EQ(std::getenv("OPENBLAS_NUM_THREADS"), nullptr);
}

}  // namespace
}  // namespace weft::device::cpu
