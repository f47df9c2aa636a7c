// weft/program/tasks/masked_regions.h -- where a mask over positions leaves nothing to compute.
//
//   %3 = less-equal %t, %s          t > s: false
//   %4 = select %3, %scores, -inf   t > s: the scores are not read
//   %5 = softmax %4 {over=[t]}      t > s: zero
//   %6 = contract %5, %v            t > s: adds nothing
//
// Two questions are asked of every value, each answered by at most one region: where is it zero because a
// select or a softmax made it so, and where does no reader's result depend on it? The first is carried from
// operands to results, the second from results to operands. Whatever neither knows, in particular any
// operator not named in the .cpp, is nowhere zero and everywhere read.
//
// Zero times infinity is taken for zero: what a mask has dropped does not come back as a NaN. Otherwise a
// program that leaves such work out has the bits of one that does it.
#pragma once
#include <optional>
#include <vector>

#include "weft/plan/graph/graph.h"
#include "weft/program/tasks/band.h"

namespace weft::program {

struct MaskedRegions {
  std::vector<std::optional<Region>> zero;    // by value
  std::vector<std::optional<Region>> unread;  // by value: may be zero there instead

  // What a contraction of two values need not compute, if anything.
  std::optional<Region> of_product(const plan::NodeView& contraction) const;
};

// `needed`, by node: what others read does not count.
MaskedRegions find_masked_regions(const plan::Graph& graph, const std::vector<bool>& needed);

}  // namespace weft::program
