// weft/program/tasks/left_out.h -- what an update computes in case, and leaves out where it turns out not to be needed.
//
//   %20 = adam %1, %10, ..              the step, taken at once
//   %30 = equal %29, %2                 whether it stands: known when all ranks have said their part of a norm
//   %31 = mul %10, %29                  left out where it stands
//   %32 = adam %1, %31, ..              left out where it stands
//   %33 = select %30, %20, %32
#pragma once
#include <vector>

#include "weft/plan/graph/graph.h"
#include "weft/program/tasks/order.h"

namespace weft::program {

// By node: the flag, a single one, where which holds nobody reads the node's results; invalid for the rest.
// Exchanges are never left out: other ranks wait for them. REQUIRES: `needed` is by node.
std::vector<plan::ValueId> flags_to_leave_out(const plan::Graph& graph, const Readers& readers,
                                              const std::vector<bool>& needed);

}  // namespace weft::program
