// weft/cost/scaled_passes.h -- what products of eight bits need beside them, as it runs.
//
//   a = |x|                               one pass over x: its largest are found as it is read, and the few
//   l = max a, s = max(l, tiny) / 448     numbers of s made of them at its end
//   q = f8(x / s)                         another, which reads x and writes q
//   y = (q r) s t                         the product multiplies its sums by the scales
//   x = wide(q) s                         widened as it is read
//
// So of these nodes |x|, the cast to q, the product and the last one have a price.
#pragma once
#include "weft/plan/graph.h"

namespace weft::cost {

// Told by the node and by what leads to it. A row whose largest is found and divided by in one pass reads x once
// instead: that is not counted.
bool is_within_scaled_pass(const plan::NodeView& node);

}  // namespace weft::cost
