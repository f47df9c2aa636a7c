// weft/parallel/train/differentiate.h -- reverse-mode differentiation of a plan.
//
//   %7 = reduce %6 {kind=mean, to=[]}               loss
//   WEFT_TRY(gradients, differentiate(graph, loss, parameters));
//
// The nodes are visited from the loss backwards, and each adds the gradients that its operator
// defines (ops/gradient.h). A value that is used more than once gets their sum, by `add`, in the
// order of the visits. Only nodes that depend on a wanted value and influence the loss are visited,
// so no work is wasted. Integers and booleans have no gradient.
#pragma once
#include <span>
#include <vector>

#include "weft/base/result.h"
#include "weft/plan/graph/graph.h"

namespace weft::train {

// Appends the nodes of d loss / d value for each value in `with_respect_to`. Returns these
// gradients in the same order, each of its value's type; invalid if the loss does not depend on the
// value. New nodes are in the backward phase and get the label and scope of the node that they
// differentiate. `scale`, a scalar that already exists, multiplies the loss. Fails if the loss is
// not a real scalar, a wanted value is not real, or an operator between them has no gradient; nodes
// added until then remain, unused.
Result<std::vector<plan::ValueId>> differentiate(plan::Graph& graph, plan::ValueId loss,
                                                 std::span<const plan::ValueId> with_respect_to,
                                                 plan::ValueId scale = {});

}  // namespace weft::train
