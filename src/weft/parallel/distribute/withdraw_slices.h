// weft/parallel/distribute/withdraw_slices.h -- withdraws slices that would be undone at once.
//
//   gpu: slice x, b       scores = contract z[b,s,d], router[d,x] -> [b,s,x]        x, by the list
//                         top-k scores over x                                        needs x whole
//
// Sliced along x, z would have to be whole on every rank and the scores gathered again. Sliced
// along b, only the router's gradient moves. So if all readers of a product need the index whole,
// the bytes moved by both choices are compared. The next index of the list may win, for the product
// and for its gradients. A projection to the logits of a large vocabulary keeps its slice, because
// there the parameter is large.
#pragma once
#include <span>

#include "weft/parallel/distribute/choose_loops.h"

namespace weft::distribute {

void withdraw_slices(const plan::Graph& graph, const Signatures& signatures, const plan::Mesh& mesh,
                     const StageUses& uses, const Exceptions& exceptions, LoopChoices& choices);

}  // namespace weft::distribute
