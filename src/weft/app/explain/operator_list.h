// weft/app/explain/operator_list.h -- the operators of an entry as text.
#pragma once
#include <span>
#include <string>

#include "weft/plan/graph/graph.h"

namespace weft::explain {

// A node's operator, or for an exchange in a distributed plan, its collective.
std::string shown_name(const plan::NodeView& node);

// "layer-norm, mul ×2, add", in the order of their first node.
std::string operator_list(const plan::Graph& graph, std::span<const plan::NodeId> nodes);

}  // namespace weft::explain
