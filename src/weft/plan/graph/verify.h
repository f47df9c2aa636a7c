// weft/plan/graph/verify.h -- whether a plan is well formed.
//
// Succeeds iff every node's inputs come from earlier nodes and from no later phase than its own, its
// operator accepts them and infers just the types the node has, no two sources and no two outputs share a name, and
// every output is a value of the plan. Fails naming the node and the fault:
//
//   node %12 (contract at block.3.scores): index e has size 64 in operand 0 but 32 in operand 1
#pragma once
#include "weft/base/result.h"
#include "weft/plan/graph/graph.h"

namespace weft::plan {

Status verify(const Graph& graph);

// Fails where the node reads from a later phase than its own. The reader of plan text asks it too, so that
// the fault comes with its line.
Status verify_phases(const Graph& graph, NodeId id);

// Whether the plan is given this node's value by name. The reader refuses a second one of a name too.
bool is_named_source(const Node& node);

// "%12 (contract at block.3.scores)": how a node is named to people.
std::string describe(const Graph& graph, NodeId id);

}  // namespace weft::plan
