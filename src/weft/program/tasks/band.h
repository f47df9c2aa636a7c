// weft/program/tasks/band.h -- the part of a matrix product that need not be computed.
//
//        n                 scores of a causal model, n > m:    values, k > m:
//      . # # # #           elements at # are never read,       the left operand is zero at #, so row i
//   m  . . # # #           so blocks inside stay zero          sums only its first i + 1 products
//      . . . # #
//
// A Region describes this for the elements of a value, by its indices; a Band for a product, by its
// sides.
#pragma once
#include <algorithm>
#include <cstdint>
#include <optional>

#include "weft/base/symbols.h"

namespace weft::program {

// The elements of a value with index `later` > index `earlier` + offset, both counted from 0.
struct Region {
  Symbol later, earlier;
  std::int64_t offset = 0;

  friend bool operator==(const Region&, const Region&) = default;
};

// The intersection of two regions over the same indices.
inline std::optional<Region> both(const std::optional<Region>& x, const std::optional<Region>& y) {
  if (!x || !y || x->later != y->later || x->earlier != y->earlier) return std::nullopt;
  return Region{x->later, x->earlier, std::max(x->offset, y->offset)};
}

struct Range {
  std::int64_t begin = 0, end = 0;

  bool empty() const { return begin >= end; }
  friend bool operator==(const Range&, const Range&) = default;
};

enum class Side : std::uint8_t { m, n, k };

// Ranges of rows, columns and summands of a product.
struct ProductBlock {
  Range m, n, k;

  Range& operator[](Side side) { return side == Side::m ? m : side == Side::n ? n : k; }
  bool empty() const { return m.empty() || n.empty() || k.empty(); }
};

// The region `later` > `earlier` + offset of two different sides needs no computation.
struct Band {
  Side later = Side::n, earlier = Side::m;
  std::int64_t offset = 0;

  // The smallest block that contains everything of this block that must be computed.
  ProductBlock needed(ProductBlock block) const {
    Range &high = block[later], &low = block[earlier];
    const std::int64_t begin = high.begin - offset, end = low.end + offset;
    low.begin = std::max(low.begin, begin);
    high.end = std::min(high.end, end);
    return block;
  }

  // The band relative to the part of the product that begins at row m, column n and summand k.
  Band from(std::int64_t m, std::int64_t n, std::int64_t k = 0) const {
    const auto begin = [&](Side side) { return side == Side::m ? m : side == Side::n ? n : k; };
    return {later, earlier, offset + begin(earlier) - begin(later)};
  }

  friend bool operator==(const Band&, const Band&) = default;
};

}  // namespace weft::program
