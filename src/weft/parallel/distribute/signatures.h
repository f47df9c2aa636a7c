// weft/parallel/distribute/signatures.h -- the index signature of every node, worked out once for equal nodes.
//
// A signature follows from the operator, the operands' types and the attributes, so the ninety-six layers of
// a model share those of one. They are the signatures with borders (ops/sliding.h): a loop that windows slide
// along counts as one that may be cut, and borders are fetched where it is.
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
  // Nodes of one kind have one signature, one operator and operands of the same types.
  std::size_t kind(plan::NodeId node) const { return kinds_[node.value]; }
  std::size_t kinds() const { return signatures_.size(); }
  std::size_t nodes() const { return kinds_.size(); }

 private:
  std::vector<std::uint32_t> kinds_;  // by node
  std::vector<std::unique_ptr<const plan::Signature>> signatures_;
};

// Every loop of the node is parallel, and windows slide along none: it is computed element by element.
bool is_elementwise(const plan::NodeView& node, const plan::Signature& signature);

// Whether the loop walks an index of that name in some operand or result.
bool bears(const plan::NodeView& node, const plan::Loop& loop, Symbol index);

// Whether some operand has the loop. One that only results have can be cut by nobody: the operands, all of
// them whole, do not say so.
bool has_operand(const plan::Loop& loop);

}  // namespace weft::distribute
