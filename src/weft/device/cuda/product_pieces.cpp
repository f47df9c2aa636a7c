#include "weft/device/cuda/product_pieces.h"

#include <algorithm>

namespace weft::device::cuda {
namespace {

constexpr std::int64_t kEven = 8;

// The remainder comes first, so that in a sum over k the small part is rounded between the
// products.
std::vector<program::Range> cut_evenly(std::int64_t size) {
  const std::int64_t even = size / kEven * kEven;
  if (even == 0 || even == size) return {{0, size}};
  return {{even, size}, {0, even}};
}

}  // namespace

std::vector<ProductPiece> split_evenly(const program::MatrixProduct& product, std::int64_t least_work) {
  const program::Operand &a = product.a, &b = product.b, &c = product.c;
  const bool strides_are_even =
      a.row_stride % kEven == 0 && b.row_stride % kEven == 0 && c.row_stride % kEven == 0;
  if (!strides_are_even || product.m * product.n < least_work / std::max<std::int64_t>(product.k, 1))
    return {{.m = product.m, .n = product.n, .k = product.k}};
  std::vector<ProductPiece> pieces;
  for (const program::Range m : cut_evenly(product.m))
    for (const program::Range n : cut_evenly(product.n))
      for (const program::Range k : cut_evenly(product.k))
        pieces.push_back(
            {.m = m.end - m.begin,
             .n = n.end - n.begin,
             .k = k.end - k.begin,
             .a = a.transposed ? k.begin * a.row_stride + m.begin : m.begin * a.row_stride + k.begin,
             .b = b.transposed ? n.begin * b.row_stride + k.begin : k.begin * b.row_stride + n.begin,
             .c = m.begin * c.row_stride + n.begin,
             .adds = k.begin == 0 && k.end != product.k});
  return pieces;
}

}  // namespace weft::device::cuda
