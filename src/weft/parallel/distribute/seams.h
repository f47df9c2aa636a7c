// weft/parallel/distribute/seams.h -- where along an index a value was put together, and a slice of it at other sizes.
//
//   w = concat(q[d, n=768], k[d, n=768], along=n)      seams of y along n: 0, 768, 1536
//   y = contract(x, w)
//   slice(y, along=n, begin=768, end=1536)             from the second seam to the third, at any size
//
// Rules merge what is alike and cut the result apart again: their slices begin and end at seams.
#pragma once
#include <cstdint>
#include <vector>

#include "weft/base/result.h"
#include "weft/plan/graph/graph.h"

namespace weft::distribute {

// Ascending, from 0 to the size of the index. REQUIRES: the value has it.
std::vector<std::int64_t> seams(const plan::Graph& graph, plan::ValueId value, Symbol index);

struct Stretch {
  std::int64_t begin = 0, end = 0;
};

// What `slice` of `graph` takes of `input`, a value of another graph that was made in the same way at other
// sizes. Fails where it does not begin and end at seams.
Result<Stretch> resized_slice(const plan::NodeView& slice, const plan::Graph& other, plan::ValueId input,
                              Symbol along);

}  // namespace weft::distribute
