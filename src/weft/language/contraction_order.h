// weft/language/contraction_order.h -- which two factors of a product are multiplied first.
//
//   sum(x[b,d] * w[d,f] * v[f,c]) to [b,c]      b = 512, d = 784, f = 128, c = 10
//
//   all at once     b d f c products            514 M multiply-adds, by no matrix product
//   (x w) v         b d f, then b f c            52 M
//   x (w v)         d f c, then b d c             5 M
//
// A product of n factors is n - 1 products of two. The order is the one with the fewest multiply-adds, where
// a number that is kept for later counts as some more; of equals, the one nearest to how it was written. Found
// by dynamic programming over the subsets of the factors up to kExactFactors, and beyond that by joining the
// cheapest pair again and again.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "weft/plan/graph/type.h"

namespace weft::language {

inline constexpr std::size_t kExactFactors = 10;  // 3^10 ways to part a subset in two: under a millisecond

// Joins the results `left` and `right`; factors are numbered from 0, the results of joins follow them.
struct Join {
  std::size_t left = 0, right = 0;
  std::vector<Symbol> keeps;  // the indices that later joins or the result need, in the order they come

  friend bool operator==(const Join&, const Join&) = default;
};

// The joins of a product of at least two factors whose sum keeps the indices `to`; the last one is the whole.
std::vector<Join> order_contraction(std::span<const plan::Type> factors, std::span<const Symbol> to);

}  // namespace weft::language
