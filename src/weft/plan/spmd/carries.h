// weft/plan/spmd/carries.h -- which operators can be applied to addends before combining them.
//
//   sum:  neg(x1 + x2) = neg(x1) + neg(x2)              linear: addends in, addends out
//         (x1 + x2) * y = x1 * y + x2 * y               linear in x, while y is whole
//         relu(x1 + x2)                                  no: the addends must be combined first
//   max:  maximum(max(x1, x2), y) = max(maximum(x1, y), maximum(x2, y))
//
// Stated for real numbers, as proofs are: rounding may differ. For max and min only what holds in
// every total order counts, so of the monotone functions only those that select elements qualify.
#pragma once
#include <vector>

#include "weft/plan/graph/graph.h"

namespace weft::spmd {

// Whether the node gives addends of its results if each rank runs it on its addends of the operands
// marked in `addends` and on the others whole. REQUIRES: at least one is marked.
bool carries(const plan::NodeView& node, plan::Monoid monoid, const std::vector<bool>& addends);

}  // namespace weft::spmd
