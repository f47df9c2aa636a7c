// weft/plan/graph/verify.h -- whether a plan is well formed.
//
// Succeeds iff every node's inputs come from earlier nodes and from no later phase, its operator
// accepts them and infers exactly the types the node has, sources and outputs have unique names,
// and every output is a value of the plan. A failure names the node and the fault:
//
//   node %12 (contract at block.3.scores): index e has size 64 in operand 0 but 32 in operand 1
#pragma once
#include "weft/base/result.h"
#include "weft/plan/graph/graph.h"

namespace weft::plan {

Status verify(const Graph& graph);

// Fails if the node reads from a later phase than its own. The reader of plan text calls it too, so
// that the error has a line number.
Status verify_phases(const Graph& graph, NodeId id);

// Whether the node's value is supplied by name. The reader of plan text rejects duplicate names
// too.
bool is_named_source(const Node& node);

// A node's name in messages: "%12 (contract at block.3.scores)".
std::string describe(const Graph& graph, NodeId id);

}  // namespace weft::plan
