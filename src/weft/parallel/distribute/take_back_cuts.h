// weft/parallel/distribute/take_back_cuts.h -- a cut that would be undone at once is not made.
//
//   gpu: slice x, b       scores = contract z[b,s,d], router[d,x] -> [b,s,x]        x, by the list
//                         top-k scores over x                                        needs x whole
//
// Cut along x, z would have to be whole on every rank and the scores gathered again; cut along b, nothing
// moves but the router's gradient. So where all readers of a product need the index whole, the bytes that
// both ways move are compared, and the next index of the list may win, for the product and for its
// gradients. A product that makes the words' scores of a large vocabulary keeps its cut: there the parameter
// is what is large.
#pragma once
#include <span>

#include "weft/parallel/distribute/choose_loops.h"

namespace weft::distribute {

void take_back_cuts(const plan::Graph& graph, const Signatures& signatures, const plan::Mesh& mesh,
                    const StageUses& uses, const Exceptions& exceptions, LoopChoices& choices);

}  // namespace weft::distribute
