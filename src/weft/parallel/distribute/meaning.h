// weft/parallel/distribute/meaning.h -- maps distributed values to single-device values.
#pragma once
#include "weft/parallel/distribute/distribute.h"
#include "weft/plan/graph/graph.h"

namespace weft::distribute {

// Communication changes a value's layout, not the value. `open`: the single-device plan, with the
// nodes decomposed that the plan decomposed. Invalid if the value has no counterpart.
plan::ValueId counterpart_of(const plan::Graph& open, const DistributedPlan& plan, plan::ValueId value);

// The first node that computes with integers in a way that the single-device plan does not. Tests
// at small sizes cannot show its effect at large ones, such as a mask that ends at position 200.
// Invalid if there is none.
plan::NodeId find_changed_integers(const plan::Graph& open, const DistributedPlan& plan);

}  // namespace weft::distribute
