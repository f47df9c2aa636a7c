// weft/predict/cost/liveness.h -- how much memory the results of a plan need when it runs in order.
//
// A result lives from its node to its last reader; outputs live to the end. Views share their
// operand's memory, and sources (inputs, parameters, states) are not counted: they live throughout.
#pragma once
#include "weft/plan/graph/graph.h"

namespace weft::cost {

// The most bytes alive at once, before any packing.
double peak_live_bytes(const plan::Graph& graph);

}  // namespace weft::cost
