// weft/program/tasks/matrix_product.h -- a contraction of two values as matrix products.
//
//   q[b,h,s,e] = n[b,s,d] * w[d,h,e]      with q in memory as [b,s,h,e]:
//
//       (b s) x d   times   d x (h e)   =   (b s) x (h e)          one product of 2048 x 384 x 384
//
// Each index has one role: row (in a and c), column (in b and c), summed (in a and b), or outer (in
// all three). Indices of one role that are evenly spaced in both places merge into one loop. The
// largest loop of each role becomes the product's m, n or k; the others are loops around it.
#pragma once
#include <cstdint>
#include <optional>

#include "weft/base/inline_vector.h"
#include "weft/program/tasks/band.h"
#include "weft/program/tasks/place.h"

namespace weft::program {

// A loop around the product, with its step in each of the three operands.
struct ProductLoop {
  std::int64_t size = 1;
  std::int64_t a = 0, b = 0, c = 0;
  Symbol index = {};  // invalid if several indices are merged
};

struct Operand {
  BufferId buffer;
  std::int64_t offset = 0;      // in elements
  bool transposed = false;      // stored k x m (a) or n x k (b)
  std::int64_t row_stride = 0;  // between stored rows, at least their length
  plan::DType dtype = plan::DType::f32;
};

// c = a * b, accumulated in f32, for every point of `outer`, summed over every point of `summed`.
struct MatrixProduct {
  std::int64_t m = 1, n = 1, k = 1;
  Operand a, b, c;                      // c is never transposed
  InlineVector<ProductLoop, 4> outer;   // each point writes its own c
  InlineVector<ProductLoop, 4> summed;  // each point adds to the same c
  std::optional<Band> nothing = {};     // where c is not read, or a or b is zero: c may be zero there

  std::int64_t calls() const;
  double flops() const;
  // Estimated time on a processor with `flops_per_second` for large products; small and thin
  // products are slower. For choosing between variants, not for EXPLAIN.
  double estimate() const;
};

// Empty if no choice of m, n and k gives each operand a side of stride 1. `masked`: where c is not
// read, or an operand is zero; used if both of its indices are sides.
std::optional<MatrixProduct> as_matrix_product(const Place& a, const Place& b, const Place& c,
                                               const std::optional<Region>& masked = {});

}  // namespace weft::program
