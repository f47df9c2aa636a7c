// weft/parallel/distribute/concat_boundaries.h -- concatenation boundaries of a value along an index.
//
//   w = concat(q[d, n=768], k[d, n=768], along=n)      boundaries of y along n: 0, 768, 1536
//   y = contract(x, w)
//   slice(y, along=n, begin=768, end=1536)             from boundary 2 to 3, at any size
//
// Rules merge similar operators and slice the merged result: these slices begin and end at such
// boundaries.
#pragma once
#include <cstdint>
#include <vector>

#include "weft/base/result.h"
#include "weft/plan/graph/graph.h"

namespace weft::distribute {

// Ascending, from 0 to the size of the index. REQUIRES: the value has the index.
std::vector<std::int64_t> concat_boundaries(const plan::Graph& graph, plan::ValueId value, Symbol index);

struct Stretch {
  std::int64_t begin = 0, end = 0;
};

// The bounds of `slice` of `graph` when applied to `input`, a value of another graph computed in
// the same way at other sizes. Fails if the slice does not begin and end at concatenation
// boundaries.
Result<Stretch> resized_slice(const plan::NodeView& slice, const plan::Graph& other, plan::ValueId input,
                              Symbol along);

}  // namespace weft::distribute
