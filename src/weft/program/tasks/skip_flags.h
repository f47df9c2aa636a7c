// weft/program/tasks/skip_flags.h -- speculative updates: nodes to skip if they are not needed.
//
//   %20 = adam %1, %10, ..              the step, taken at once
//   %30 = equal %29, %2                 whether it stands: known after a norm over all ranks
//   %31 = mul %10, %29                  skipped if it stands
//   %32 = adam %1, %31, ..              skipped if it stands
//   %33 = select %30, %20, %32
#pragma once
#include <vector>

#include "weft/plan/graph/graph.h"
#include "weft/program/tasks/order.h"

namespace weft::program {

// By node: a scalar flag; if it is true, the node's results are not read. Invalid for all other
// nodes. Exchanges are never skipped, since other ranks wait for them. REQUIRES: `needed` is by
// node.
std::vector<plan::ValueId> skip_flags(const plan::Graph& graph, const Readers& readers,
                                      const std::vector<bool>& needed);

}  // namespace weft::program
