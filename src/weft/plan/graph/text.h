// weft/plan/graph/text.h -- reads and prints plan text.
//
//   plan mlp
//   %0 = input {name=x, type=f32[b=64,d=784]}
//   %1 = parameter {name=w, type=f32[d=784,f=512], init=normal, a=0, b=0.02}
//   %2 = contract %0, %1 {to=[b,f]} : f32[b=64,f=512] @h
//   return h=%2
//
// One line per node: the values it makes, numbered in order; the operator; its operands; attributes
// that differ from their defaults; the types of its results, which are checked against what the
// operator infers (they may be left out on input); where in the model it comes from; and, in a
// training plan, its phase: `@h in backward`. The default phase is forward. # starts a comment.
// read(print(g)) equals g: the same nodes, types, labels, phases and outputs.
#pragma once
#include <string>
#include <string_view>

#include "weft/base/result.h"
#include "weft/plan/graph/graph.h"
#include "weft/plan/graph/operator.h"

namespace weft::plan {

std::string print(const Graph& graph);

// One node as a line of text, without a newline.
std::string print(const Graph& graph, NodeId id);

// Errors carry the span of the offending text.
Result<Graph> read(std::string_view text, const OperatorSet& operators);

}  // namespace weft::plan
