// weft/language/contraction_order.h -- the contraction order of a product of several factors.
//
//   sum(x[b,d] * w[d,f] * v[f,c]) to [b,c]      b = 512, d = 784, f = 128, c = 10
//
//   all at once     b d f c products            514 M multiply-adds, not as matrix products
//   (x w) v         b d f, then b f c            52 M
//   x (w v)         d f c, then b d c             5 M
//
// A product of n factors becomes n - 1 products of two. The order minimizes the multiply-adds, plus
// a cost per element of each intermediate. Ties go to the order nearest to the text. It is found by
// dynamic programming over the subsets of up to kExactFactors factors. Beyond that, the cheapest
// pair is joined repeatedly.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "weft/plan/graph/type.h"

namespace weft::language {

inline constexpr std::size_t kExactFactors = 10;  // 3^10 splits of subsets in two: under a millisecond

// Joins the results `left` and `right`. Factors are numbered from 0; the results of joins follow
// them.
struct Join {
  std::size_t left = 0, right = 0;
  std::vector<Symbol> keeps;  // indices needed by later joins or the result, in order

  friend bool operator==(const Join&, const Join&) = default;
};

// The joins of a product of at least two factors whose sum keeps the indices `to`. The last join is
// the result.
std::vector<Join> order_contraction(std::span<const plan::Type> factors, std::span<const Symbol> to);

}  // namespace weft::language
