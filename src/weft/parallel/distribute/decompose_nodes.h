// weft/parallel/distribute/decompose_nodes.h -- decomposes nodes along indices that are sliced.
//
//   gpu: slice h, f, v, s       logits = contract z[b,s,d], embed[v,d] -> [b,s,v]       sliced along v
//                               cross-entropy logits, label over v                      needs v whole
//
// Gathering the logits of a large vocabulary would move the largest tensor of the model. Suppose an
// axis lists an index before any other that the node can be sliced along, and the node can be
// decomposed along it (spmd/decompose_rows.h). Then the node is decomposed in the single-device plan,
// and the result is distributed as usual. Here that takes three all-reduces of one number per row.
// Likewise, a batch norm with a sliced batch takes two all-reduces of one number per channel
// instead of gathering all activations.
#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "weft/base/result.h"
#include "weft/parallel/distribute/choose_loops.h"
#include "weft/parallel/distribute/distribute.h"
#include "weft/plan/graph/graph.h"

namespace weft::distribute {

// The nodes to decompose, in order. A node is left as it is if a reader needs its result whole
// along that index, which would have to be gathered in any case.
std::vector<plan::NodeId> choose_decompositions(const plan::Graph& graph, const Signatures& signatures,
                                                const plan::Mesh& mesh, const StageUses& uses,
                                                const Exceptions& exceptions);

// The plan with these nodes decomposed, each within its own phase. Symbols and scopes keep their
// ids. REQUIRES: the nodes are in order, and each can be decomposed.
Result<plan::Graph> decompose_nodes(const plan::Graph& graph, std::span<const plan::NodeId> nodes);

// A cache of decomposed plans: most distributions of a plan decompose the same nodes. Thread-safe.
// REQUIRES: the graph outlives it and does not change.
class DecompositionCache {
 public:
  struct Open {
    plan::Graph graph;
    Signatures signatures;  // of `graph`

    explicit Open(plan::Graph open) : graph(std::move(open)), signatures(graph) {}
  };

  explicit DecompositionCache(const plan::Graph& graph) : graph_(graph) {}
  Result<std::shared_ptr<const Open>> of(const std::vector<plan::NodeId>& nodes);

 private:
  static constexpr std::size_t kMostKept = 8;

  const plan::Graph& graph_;
  std::mutex mutex_;
  std::map<std::vector<plan::NodeId>, std::shared_ptr<const Open>> kept_;
};

}  // namespace weft::distribute
