// weft/rules/rule/build_side.h -- adds the nodes of one side of a rule for given bindings.
//
//   right c = contract(x, concat(v, rename(w, from=[m], to=[n]), along=n), to=[B, n])
//
//   with x=%0, v=%1, w=%2, B=[b, s], K=[d], n=f, m=g:
//     %7 = rename %2 {from=[g], to=[f]}
//     %8 = concat %1, %7 {along=f}
//     %9 = contract %0, %8 {to=[b,s,f]}
//
// The prover uses it for both sides of an instance and a rewrite for its right side, so the code
// that is proven is the code that runs. Nodes that would change nothing are left out: a rename to
// the same name, a slice of the whole index.
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

// Adds a node to the graph: Graph::add, or a function that first looks for an equal node.
using AddNode = std::function<Result<plan::NodeId>(
    const plan::Operator& op, std::span<const plan::ValueId> inputs, std::span<const plan::AttributeValue>)>;

struct Site {
  plan::Graph& graph;
  const Rule& rule;
  const Bindings& bindings;
  AddNode add = {};                  // empty: Graph::add
  const plan::Mesh* mesh = nullptr;  // for `ranks(a)`
  // Sizes of indices that the left side itself introduces, by symbol: only for making an instance.
  std::map<std::uint32_t, std::int64_t> fresh_sizes = {};
};

// Both fail if a number cannot be computed or an operator rejects its operands.

// Builds the left side from the values of the rule's inputs. Returns all its values, in order.
Result<std::vector<plan::ValueId>> build_left(Site& site, std::span<const plan::ValueId> inputs);

// Builds the right side from all values of the left. Returns one value per output of the rule, with
// exactly the type of the left's. Adds a transpose if the index order differs.
Result<std::vector<plan::ValueId>> build_right(Site& site, std::span<const plan::ValueId> left);

}  // namespace weft::rule
