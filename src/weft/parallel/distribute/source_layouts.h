// weft/parallel/distribute/source_layouts.h -- layouts of inputs, parameters, states, updates.
//
//   gpu=8: slice h, f            w1[d,f]   its readers slice f: sliced(f)
//   node=4: slice b, shard ..              its readers need it whole: replicated, or, sharded:
//
//                    parameter        its moments      the update       gradient          next parameter
//     nothing        replicated       replicated       whole            all-reduce        -
//     optimizer      replicated       sliced(d)        sliced along d   reduce-scatter    all-gather
//     parameters     sliced(d)        sliced(d)        sliced along d   reduce-scatter    -
//
// A parameter has the layout that its readers in the forward pass agree on; otherwise it is whole.
// Its update is the node that reads it, or its master weight, and computes the output "next NAME"
// before rounding. States that this node reads and that have the parameter's indices belong to the
// optimizer. The rounded parameter is what gets gathered. All other states are whole. Inputs have
// the layout that their readers agree on.
#pragma once
#include <vector>

#include "weft/parallel/distribute/choose_loops.h"
#include "weft/parallel/distribute/distribute.h"
#include "weft/parallel/distribute/exceptions.h"
#include "weft/parallel/distribute/signatures.h"

namespace weft::distribute {

struct SourceLayouts {
  // By node: the layout of a source; for an update, the layout in which it reads the parameter, its
  // gradient and its moments; without axes for all other nodes.
  std::vector<plan::Layout> layouts;
  std::vector<plan::NodeId> updated;  // by node: the parameter that it updates or rounds, if any
};

// `smallest_share`: a parameter that would leave fewer elements than this per rank is not sharded.
SourceLayouts choose_source_layouts(const plan::Graph& graph, const Signatures& signatures,
                                    const LoopChoices& choices, const Distribution& distribution,
                                    const StageUses& uses, const Exceptions& exceptions,
                                    std::int64_t smallest_share);

}  // namespace weft::distribute
