// weft/plan/graph/settle_phases.h -- each node in the phase of its earliest reader at the latest.
//
//   %8 = mul %6, %7 in update                  %8 = mul %6, %7 in backward
//   %9 = contract %8, %2 {..} in backward  =>  %9 = contract %8, %2 {..} in backward
//
// A pass that shares equal nodes, or rewrites one part of a plan at a time, leaves nodes behind whose phase is that of
// another reader.
#pragma once
#include "weft/base/result.h"
#include "weft/plan/graph/graph.h"

namespace weft::plan {

// Nodes, values, symbols and scopes keep their numbers.
Status settle_phases(Graph& graph);

}  // namespace weft::plan
