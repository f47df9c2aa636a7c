// weft/predict/cost/scaled_passes.h -- what products of eight bits need beside them, as it runs.
//
//   l = largest of x over k            a pass over x, the few numbers of s made of l at its end; none of its own
//   s = max(l, tiny) / 448             where rows of x run over k, so that each is read once for l and q
//   q = f8(x / s)                      a pass that reads x and writes q
//   y = (q r) s t                      the product multiplies its sums by the scales
//   x = wide(q) s                      widened as it is read
//
// So of these nodes the first where it is a pass, the cast to q, the product and the last one have a price.
#pragma once
#include "weft/plan/graph/graph.h"

namespace weft::cost {

// Told by the node and by what leads to it.
bool is_within_scaled_pass(const plan::NodeView& node);

}  // namespace weft::cost
