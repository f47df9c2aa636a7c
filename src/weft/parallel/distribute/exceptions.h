// weft/parallel/distribute/exceptions.h -- the nodes and sources that exceptions refer to.
//
//   replicate w1 on gpu          the source w1
//   slice s of scores on gpu     every node of the entry `scores`, in all layers, forward and backward
//   slice s of block.3.scores on gpu   in that layer only
#pragma once
#include <unordered_map>
#include <vector>

#include "weft/base/result.h"
#include "weft/parallel/distribute/distribution.h"
#include "weft/parallel/distribute/signatures.h"
#include "weft/plan/graph/graph.h"

namespace weft::distribute {

class Exceptions {
 public:
  // Fails on a tensor, axis or index that does not exist, on an index along which no node of the
  // tensor can be sliced, and on two exceptions that contradict each other for one node.
  static Result<Exceptions> resolve(const plan::Graph& graph, const Signatures& signatures,
                                    const Distribution& distribution);

  // The exception for the node on that axis. Null: none; an index: slice along it; an invalid
  // index: keep it whole.
  const Symbol* find(plan::NodeId node, std::size_t axis) const;

 private:
  Status add(const plan::Graph& graph, plan::NodeId node, std::size_t axis, Symbol index,
             const Exception& exception);

  std::unordered_map<std::uint64_t, Symbol> said_;  // by node and axis
};

}  // namespace weft::distribute
