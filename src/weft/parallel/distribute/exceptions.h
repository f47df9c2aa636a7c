// weft/parallel/distribute/exceptions.h -- which nodes and sources a distribution's exceptions speak of.
//
//   replicate w1 on gpu          the source w1
//   slice s of scores on gpu     every node of the entry `scores`, in all layers, forward and backward
//   slice s of block.3.scores on gpu   in that layer alone
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
  // Fails on a tensor, axis or index that does not exist, an index along which nothing of the tensor can be
  // cut, and on two exceptions that say different things of one node.
  static Result<Exceptions> resolve(const plan::Graph& graph, const Signatures& signatures,
                                    const Distribution& distribution);

  // What is said of the node on that axis: nothing (null), to be cut along an index, or, where that index is
  // invalid, to be whole.
  const Symbol* find(plan::NodeId node, std::size_t axis) const;

 private:
  Status add(const plan::Graph& graph, plan::NodeId node, std::size_t axis, Symbol index,
             const Exception& exception);

  std::unordered_map<std::uint64_t, Symbol> said_;  // by node and axis
};

}  // namespace weft::distribute
