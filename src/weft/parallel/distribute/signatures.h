// weft/parallel/distribute/signatures.h -- index signatures, computed once for equal nodes.
//
// A signature depends on the operator, the operand types and the attributes, so the ninety-six
// layers of a model share those of one layer. These signatures include halos (ops/sliding.h): a
// loop that windows slide along counts as one that may be sliced, and halos are fetched if it is.
#pragma once
#include <memory>
#include <vector>

#include "weft/plan/graph/graph.h"

namespace weft::distribute {

class Signatures {
 public:
  // REQUIRES: the graph outlives it and does not change.
  explicit Signatures(const plan::Graph& graph);

  const plan::Signature& of(plan::NodeId node) const { return *signatures_[kinds_[node.value]]; }
  // Nodes of one kind share a signature, an operator and operand types.
  std::size_t kind(plan::NodeId node) const { return kinds_[node.value]; }
  std::size_t kinds() const { return signatures_.size(); }
  std::size_t nodes() const { return kinds_.size(); }

 private:
  std::vector<std::uint32_t> kinds_;  // by node
  std::vector<std::unique_ptr<const plan::Signature>> signatures_;
};

// Whether every loop of the node is parallel and no windows slide along it, so it is elementwise.
bool is_elementwise(const plan::NodeView& node, const plan::Signature& signature);

// Whether the loop covers an index of that name in some operand or result.
bool bears(const plan::NodeView& node, const plan::Loop& loop, Symbol index);

// Whether some operand has the loop. A loop that only results have cannot be sliced: whole operands
// would not express it.
bool has_operand(const plan::Loop& loop);

}  // namespace weft::distribute
