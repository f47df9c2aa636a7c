// weft/predict/cost/scaled_passes.h -- which nodes of eight-bit matrix products cost a pass.
//
//   l = largest of x over k            a pass over x, which computes the few values of s at its end; no pass
//   s = max(l, tiny) / 448             if the rows of x run over k, so that each row is read once for l and q
//   q = f8(x / s)                      a pass that reads x and writes q
//   y = (q r) s t                      the product multiplies its sums by the scales
//   x = wide(q) s                      widened as it is read
//
// So only these nodes have a cost: the first if it is a pass, the cast to q, the product and the
// last.
#pragma once
#include "weft/plan/graph/graph.h"

namespace weft::cost {

// Determined by the node and its producers.
bool is_within_scaled_pass(const plan::NodeView& node);

}  // namespace weft::cost
