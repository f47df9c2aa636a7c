// weft/parallel/train/differentiate.h -- the gradient of a plan, as more plan.
//
//   %7 = reduce %6 {kind=mean, to=[]}               loss
//   WEFT_TRY(gradients, differentiate(graph, loss, parameters));
//
// Reverse mode: the nodes are visited from the loss backwards, each adds what its operator says
// (ops/gradient.h), and a value that is used more than once gets the sum, by `add`, in the order
// of the visits. Only nodes that both depend on a wanted value and influence the loss are
// visited, so nothing is computed in vain. Integers and booleans carry no gradient.
#pragma once
#include <span>
#include <vector>

#include "weft/base/result.h"
#include "weft/plan/graph/graph.h"

namespace weft::train {

// Appends the nodes of d loss / d value for each value in `with_respect_to`, and returns those
// gradients in the same order and each of its value's type; an invalid id where the loss does not
// depend on the value. New nodes are of the backward phase and bear the label and scope of the node they
// differentiate. Fails when
// the loss is not a real scalar, a wanted value is not real, or an operator on the way has no
// gradient; nodes added until then stay, unused. `scale`, a number that is there by then, multiplies the loss.
Result<std::vector<plan::ValueId>> differentiate(plan::Graph& graph, plan::ValueId loss,
                                                 std::span<const plan::ValueId> with_respect_to,
                                                 plan::ValueId scale = {});

}  // namespace weft::train
