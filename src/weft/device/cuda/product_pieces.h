// weft/device/cuda/product_pieces.h -- a matrix product cut where its sides are no multiples of eight.
//
//   50257 = 50256 + 1      cuBLAS multiplies narrow numbers several times faster where every side is a multiple of
//                          eight elements, 16 bytes: the large piece then is one, and the rest is little
#pragma once
#include <cstdint>
#include <vector>

#include "weft/program/tasks/matrix_product.h"

namespace weft::device::cuda {

struct ProductPiece {
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t a = 0, b = 0, c = 0;  // how many elements further on it begins
  bool adds = false;                 // to what another piece left in c

  friend bool operator==(const ProductPiece&, const ProductPiece&) = default;
};

// In the order in which they are done; one, of everything, where nothing is to be gained.
std::vector<ProductPiece> even_pieces(const program::MatrixProduct& product, std::int64_t least_work);

}  // namespace weft::device::cuda
