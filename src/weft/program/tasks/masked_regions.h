// weft/program/tasks/masked_regions.h -- finds where a mask leaves nothing to compute.
//
//   %3 = less-equal %t, %s          t > s: false
//   %4 = select %3, %scores, -inf   t > s: the scores are not read
//   %5 = softmax %4 {over=[t]}      t > s: zero
//   %6 = contract %5, %v            t > s: adds nothing
//
// Finds two properties of every value, each as at most one region: where it is zero because of a
// select or softmax, and where no result depends on it. The first propagates from operands to
// results, the second from results to operands. Everything else, in particular any operator not
// named in the .cpp, counts as never zero and always read.
//
// Zero times infinity counts as zero: a masked value does not come back as NaN. Apart from that,
// skipping this work gives bitwise identical results.
#pragma once
#include <optional>
#include <vector>

#include "weft/plan/graph/graph.h"
#include "weft/program/tasks/band.h"

namespace weft::program {

struct MaskedRegions {
  std::vector<std::optional<Region>> zero;    // by value
  std::vector<std::optional<Region>> unread;  // by value: may be zero there instead

  // The region that a contraction of two values need not compute, if any.
  std::optional<Region> of_product(const plan::NodeView& contraction) const;
};

// `needed`, by node: reads by other nodes do not count.
MaskedRegions find_masked_regions(const plan::Graph& graph, const std::vector<bool>& needed);

}  // namespace weft::program
