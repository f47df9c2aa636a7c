// weft/device/cuda/product_pieces.h -- splits a matrix product whose sides are not multiples of
// eight.
//
//   50257 = 50256 + 1      cuBLAS multiplies narrow types several times faster if every side is a multiple of
//                          eight elements (16 bytes): the large piece then is, and the rest is small
#pragma once
#include <cstdint>
#include <vector>

#include "weft/program/tasks/matrix_product.h"

namespace weft::device::cuda {

struct ProductPiece {
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t a = 0, b = 0, c = 0;  // offsets of its start, in elements
  bool adds = false;                 // to the result of another piece in c

  friend bool operator==(const ProductPiece&, const ProductPiece&) = default;
};

// In execution order; a single piece if splitting does not pay.
std::vector<ProductPiece> split_evenly(const program::MatrixProduct& product, std::int64_t least_work);

}  // namespace weft::device::cuda
