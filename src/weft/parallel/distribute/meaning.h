// weft/parallel/distribute/meaning.h -- which value of the plan of one device a value of a distributed plan should be.
#pragma once
#include "weft/parallel/distribute/distribute.h"
#include "weft/plan/graph/graph.h"

namespace weft::distribute {

// Communication changes where a value is held, not what it is. `open`: the plan of one device with the nodes
// open that the plan opened. Invalid where there is none.
plan::ValueId meaning_of(const plan::Graph& open, const DistributedPlan& plan, plan::ValueId value);

// The first node that computes with whole numbers otherwise than the plan of one device does: small sizes do
// not show what it comes to at large ones, as a mask that ends at position 200 shows. Invalid where none does.
plan::NodeId find_untold(const plan::Graph& open, const DistributedPlan& plan);

}  // namespace weft::distribute
