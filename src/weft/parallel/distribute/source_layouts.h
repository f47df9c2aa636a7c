// weft/parallel/distribute/source_layouts.h -- where inputs, parameters and states lie, and where updates are made.
//
//   gpu=8: slice h, f            w1[d,f]   its readers cut f: sliced(f)
//   node=4: slice b, shard ..              its readers need it whole: replicated, or, sharded:
//
//                    parameter        its moments      the update       gradient          next parameter
//     nothing        replicated       replicated       whole            all-reduce        -
//     optimizer      replicated       sliced(d)        cut along d      reduce-scatter    all-gather
//     parameters     sliced(d)        sliced(d)        cut along d      reduce-scatter    -
//
// A parameter lies as its readers in the forward pass agree to have it, else whole. What updates it is the
// node that reads it, or its master weight, and makes the output "next NAME", before it is rounded; states with
// the parameter's indices that this node reads are the optimizer's. What is gathered is the rounded parameter.
// All other states are whole. Inputs lie as their readers agree.
#pragma once
#include <vector>

#include "weft/parallel/distribute/choose_loops.h"
#include "weft/parallel/distribute/distribute.h"
#include "weft/parallel/distribute/exceptions.h"
#include "weft/parallel/distribute/signatures.h"

namespace weft::distribute {

struct SourceLayouts {
  // By node: where a source lies; for an update, the layout that the parameter, its gradient and its moments
  // have there; without axes for all others.
  std::vector<plan::Layout> layouts;
  std::vector<plan::NodeId> updated;  // by node: the parameter that it updates, or rounds, or none
};

// `smallest_share`: a parameter that would leave a rank fewer elements than these is not sharded.
SourceLayouts choose_source_layouts(const plan::Graph& graph, const Signatures& signatures,
                                    const LoopChoices& choices, const Distribution& distribution,
                                    const StageUses& uses, const Exceptions& exceptions,
                                    std::int64_t smallest_share);

}  // namespace weft::distribute
