// A product split where its sizes are not multiples of eight is the same product.
#include <gtest/gtest.h>

#include "weft/base/random.h"
#include "weft/device/cuda/product_pieces.h"

namespace weft::device::cuda {
namespace {

// Index of element (i, j) in the operand's layout.
std::size_t at(const program::Operand& operand, std::int64_t i, std::int64_t j) {
  return static_cast<std::size_t>(operand.transposed ? j * operand.row_stride + i
                                                     : i * operand.row_stride + j);
}

TEST(ProductPieces, ComposeTheWholeProduct) {
  Random random(3);
  for (const std::int64_t m : {1, 8, 17})
    for (const std::int64_t n : {5, 16, 25})
      for (const std::int64_t k : {1, 24, 31})
        for (int transposed = 0; transposed < 4; ++transposed) {
          program::MatrixProduct product;
          product.m = m, product.n = n, product.k = k;
          product.a.transposed = transposed % 2 == 1;
          product.b.transposed = transposed / 2 == 1;
          for (program::Operand* operand : {&product.a, &product.b, &product.c}) operand->row_stride = 40;
          std::vector<double> a(40 * 40), b(40 * 40), c(40 * 40, 7.0);
          for (auto* numbers : {&a, &b})
            for (double& number : *numbers) number = static_cast<double>(random.between(-9, 9));
          const std::vector<ProductPiece> pieces = split_evenly(product, 1);
          for (const ProductPiece& piece : pieces)
            for (std::int64_t i = 0; i < piece.m; ++i)
              for (std::int64_t j = 0; j < piece.n; ++j) {
                double total = 0;
                for (std::int64_t l = 0; l < piece.k; ++l)
                  total += a[static_cast<std::size_t>(piece.a) + at(product.a, i, l)] *
                           b[static_cast<std::size_t>(piece.b) + at(product.b, l, j)];
                double& to = c[static_cast<std::size_t>(piece.c) + at(product.c, i, j)];
                to = piece.adds ? to + total : total;
              }
          for (std::int64_t i = 0; i < m; ++i)
            for (std::int64_t j = 0; j < n; ++j) {
              double total = 0;
              for (std::int64_t l = 0; l < k; ++l) total += a[at(product.a, i, l)] * b[at(product.b, l, j)];
              EXPECT_EQ(c[at(product.c, i, j)], total) << m << " x " << n << " x " << k << ", " << transposed;
            }
          const auto odd = [](std::int64_t size) { return size > 8 && size % 8 != 0 ? 2u : 1u; };
          EXPECT_EQ(pieces.size(), odd(m) * odd(n) * odd(k));
        }
}

TEST(ProductPieces, DoNotSplitWithoutGain) {
  program::MatrixProduct product;
  product.m = 17, product.n = 25, product.k = 31;
  for (program::Operand* operand : {&product.a, &product.b, &product.c}) operand->row_stride = 40;
  const ProductPiece whole{.m = 17, .n = 25, .k = 31};
  EXPECT_EQ(split_evenly(product, 1 << 20), std::vector{whole});  // too little work
  product.b.row_stride = 41;                                      // unaligned rows
  EXPECT_EQ(split_evenly(product, 1), std::vector{whole});
}

}  // namespace
}  // namespace weft::device::cuda
