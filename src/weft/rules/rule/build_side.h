// weft/rules/rule/build_side.h -- makes the nodes of one side of a rule, for given bindings.
//
//   right c = contract(x, concat(v, rename(w, from=[m], to=[n]), along=n), to=[B, n])
//
//   with x=%0, v=%1, w=%2, B=[b, s], K=[d], n=f, m=g:
//     %7 = rename %2 {from=[g], to=[f]}
//     %8 = concat %1, %7 {along=f}
//     %9 = contract %0, %8 {to=[b,s,f]}
//
// The prover builds both sides of an instance with it and a rewrite builds its right side, so what was
// proven is what is put in. Nodes that would change nothing are left out: a rename to the same name, a
// slice of everything.
#pragma once
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "weft/base/result.h"
#include "weft/plan/graph/graph.h"
#include "weft/plan/graph/layout.h"
#include "weft/rules/rule/match.h"
#include "weft/rules/rule/rule.h"

namespace weft::rule {

// How a node gets into the graph: Graph::add, or what finds an equal node first.
using AddNode = std::function<Result<plan::NodeId>(
    const plan::Operator& op, std::span<const plan::ValueId> inputs, std::span<const plan::AttributeValue>)>;

struct Site {
  plan::Graph& graph;
  const Rule& rule;
  const Bindings& bindings;
  AddNode add = {};                  // empty: Graph::add
  const plan::Mesh* mesh = nullptr;  // for `ranks(a)`
  // Sizes of indices that the left side itself brings in, by symbol: needed only to make an instance up.
  std::map<std::uint32_t, std::int64_t> fresh_sizes = {};
};

// Both fail when a number cannot be computed or an operator refuses its operands.

// The left side from the values of the rule's inputs: all its values, in order.
Result<std::vector<plan::ValueId>> build_left(Site& site, std::span<const plan::ValueId> inputs);

// The right side from all values of the left: one value for each of the rule's outputs, of the very type that
// the left's has. A transpose is put in where the order of indices differs.
Result<std::vector<plan::ValueId>> build_right(Site& site, std::span<const plan::ValueId> left);

}  // namespace weft::rule
