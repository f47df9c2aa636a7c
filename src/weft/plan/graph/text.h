// weft/plan/graph/text.h -- plans as text, both ways.
//
//   plan mlp
//   %0 = input {name=x, type=f32[b=64,d=784]}
//   %1 = parameter {name=w, type=f32[d=784,f=512], init=normal, a=0, b=0.02}
//   %2 = contract %0, %1 {to=[b,f]} : f32[b=64,f=512] @h
//   return h=%2
//
// A line a node: the values it makes, numbered in order; the operator; its operands; attributes
// that differ from their defaults; the types of its results, which are checked against what the
// operator infers (the reader may be given a line without them); where in the model it comes
// from; and, of a plan that learns, its phase: `@h in backward`. A line that does not say is of the
// forward pass. # starts a comment. read(print(g)) equals g: the same nodes, types, labels, phases
// and outputs.
#pragma once
#include <string>
#include <string_view>

#include "weft/base/result.h"
#include "weft/plan/graph/graph.h"
#include "weft/plan/graph/operator.h"

namespace weft::plan {

std::string print(const Graph& graph);

// One node as its line of text, without a newline.
std::string print(const Graph& graph, NodeId id);

// Errors carry the span of the offending text.
Result<Graph> read(std::string_view text, const OperatorSet& operators);

}  // namespace weft::plan
