// weft/plan/ops/uses.h -- which values of a plan are read, and by which node last.
#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include "weft/plan/graph/graph.h"

namespace weft::ops {

constexpr std::size_t kNever = 0;

// For each value, one plus the number of the last node that reads it. Outputs are read after all
// nodes. Values that no output depends on are never read: kNever.
std::vector<std::size_t> last_uses(const plan::Graph& graph);

// Whether any node or output reads a result of the node.
bool is_needed(const plan::NodeView& node, std::span<const std::size_t> last);

}  // namespace weft::ops
