// bf16, f16 and 8-bit floats: converted as element_access.h defines, and multiplied as their f32
// values.
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include "weft/base/random.h"
#include "weft/device/cpu/blas.h"
#include "weft/device/cpu/narrow.h"
#include "weft/device/element_access.h"

namespace weft::device::cpu {
namespace {

using plan::DType;

constexpr DType kNarrow[] = {DType::bf16, DType::f16, DType::f8e4m3, DType::f8e5m2};

std::byte* bytes_of(std::vector<std::uint16_t>& shorts) {
  return reinterpret_cast<std::byte*>(shorts.data());
}

TEST(Narrow, WidensEveryPattern) {
  std::vector<std::uint16_t> all(65536);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::uint16_t>(i);
  for (const DType dtype : kNarrow) {
    // As 8-bit numbers, these are twice as many.
    std::vector<float> wide(all.size() * 2 / static_cast<std::size_t>(plan::size_in_bytes(dtype)));
    widen(dtype, bytes_of(all), wide.data(), static_cast<std::int64_t>(wide.size()));
    for (std::size_t i = 0; i < wide.size(); ++i) {
      const double expected = load_element(dtype, bytes_of(all), static_cast<std::int64_t>(i));
      if (std::isnan(expected))
        ASSERT_TRUE(std::isnan(wide[i])) << i;
      else
        ASSERT_EQ(static_cast<double>(wide[i]), expected) << i;
    }
  }
}

// Steps through all floats: normal, too small, halfway between two, too large, infinite and NaN; in
// lines of every length up to slightly more than two vectors.
TEST(Narrow, NarrowingRoundsToNearest) {
  for (const DType dtype : kNarrow) {
    const auto size = static_cast<std::size_t>(plan::size_in_bytes(dtype));
    std::uint32_t word = 0;
    for (std::int64_t n = 1; n < 700; ++n) {
      const std::int64_t count = n % 37 + 1;
      std::vector<float> line(static_cast<std::size_t>(count));
      for (float& x : line) x = std::bit_cast<float>(word), word += 330'001;
      line[0] = std::ldexp(1.0f + std::ldexp(static_cast<float>(n % 64), -11), static_cast<int>(n % 40) - 27);
      std::vector<std::uint16_t> shorts(line.size());
      narrow(dtype, line.data(), bytes_of(shorts), count);
      for (std::size_t i = 0; i < line.size(); ++i) {
        std::vector<std::uint16_t> expected(1);
        store_element(dtype, bytes_of(expected), 0, static_cast<double>(line[i]));
        if (std::isnan(line[i]))
          ASSERT_TRUE(std::isnan(load_element(dtype, bytes_of(shorts), static_cast<std::int64_t>(i))));
        else
          ASSERT_EQ(std::memcmp(bytes_of(shorts) + i * size, bytes_of(expected), size), 0)
              << plan::name(dtype) << " of " << line[i];
      }
    }
  }
}

TEST(Narrow, RoundEqualsNarrowThenWiden) {
  for (const DType dtype : kNarrow) {
    std::uint32_t word = 0;
    for (std::int64_t n = 1; n < 700; ++n) {
      std::vector<float> line(static_cast<std::size_t>(n % 37 + 1));
      for (float& x : line) x = std::bit_cast<float>(word), word += 330'001;
      std::vector<std::uint16_t> shorts(line.size());
      std::vector<float> expected(line.size());
      const auto count = static_cast<std::int64_t>(line.size());
      narrow(dtype, line.data(), bytes_of(shorts), count);
      widen(dtype, bytes_of(shorts), expected.data(), count);
      round(dtype, line.data(), line.data(), count);
      ASSERT_EQ(std::memcmp(line.data(), expected.data(), line.size() * sizeof(float)), 0)
          << plan::name(dtype) << ", line " << n;
    }
  }
}

template <class Short, class Multiply>
void compare_products(DType dtype, Multiply multiply) {
  Random random(3);
  const auto drawn = [&](std::int64_t n) {
    std::vector<float> numbers(static_cast<std::size_t>(n));
    for (float& x : numbers) x = static_cast<float>(random.between(-1000, 1000)) / 1000;
    return numbers;
  };
  const std::int64_t sizes[][3] = {{1, 1, 1}, {7, 33, 300}, {40, 800, 17}, {65, 50, 260}};
  for (const auto& [m, n, k] : sizes)
    for (const Transpose a : {Transpose::no, Transpose::yes})
      for (const Transpose b : {Transpose::no, Transpose::yes}) {
        std::vector<float> A = drawn(m * k), B = drawn(k * n);
        std::vector<std::uint16_t> left(A.size()), right(B.size());
        narrow(dtype, A.data(), bytes_of(left), m * k);
        narrow(dtype, B.data(), bytes_of(right), k * n);
        widen(dtype, bytes_of(left), A.data(), m * k);
        widen(dtype, bytes_of(right), B.data(), k * n);
        const std::int64_t lda = a == Transpose::no ? k : m, ldb = b == Transpose::no ? n : k;
        std::vector<float> expected(static_cast<std::size_t>(m * n), 2), found = expected;
        portable_gemm(a, b, m, n, k, 1.0f, A.data(), lda, B.data(), ldb, 1.0f, expected.data(), n);
        multiply(a, b, m, n, k, reinterpret_cast<const Short*>(left.data()), lda,
                 reinterpret_cast<const Short*>(right.data()), ldb, 1.0f, found.data(), n, nullptr);
        EXPECT_EQ(std::memcmp(expected.data(), found.data(), expected.size() * sizeof(float)), 0)
            << plan::name(dtype) << " " << m << " x " << n << " x " << k;
      }
}

// Every sum adds its products in the order of k, so operands widened in the product or before give
// equal bits. Short products that read b without packing are an exception.
TEST(Narrow, ProductsEqualThoseOfWidenedOperands) {
  compare_products<Bf16>(DType::bf16, widened_gemm);
  compare_products<F16>(DType::f16, [](auto... of) { narrow_gemm(of...); });
}

}  // namespace
}  // namespace weft::device::cpu
