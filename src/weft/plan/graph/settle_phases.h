// weft/plan/graph/settle_phases.h -- moves nodes to the phase of their earliest reader.
//
//   %8 = mul %6, %7 in update                  %8 = mul %6, %7 in backward
//   %9 = contract %8, %2 {..} in backward  =>  %9 = contract %8, %2 {..} in backward
//
// Passes that merge equal nodes or rewrite parts of a plan leave nodes in a later phase than that
// of a reader.
#pragma once
#include "weft/base/result.h"
#include "weft/plan/graph/graph.h"

namespace weft::plan {

// Nodes, values, symbols and scopes keep their numbers.
Status settle_phases(Graph& graph);

}  // namespace weft::plan
