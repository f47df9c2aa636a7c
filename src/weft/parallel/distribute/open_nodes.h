// weft/parallel/distribute/open_nodes.h -- nodes that need whole what a distribution cuts, opened before it is spread.
//
//   gpu: slice h, f, v, s       logits = contract z[b,s,d], embed[v,d] -> [b,s,v]       cut along v
//                               cross-entropy logits, label over v                      needs v whole
//
// To gather the logits of a large vocabulary would be to move the largest tensor of the model. Where an axis
// lists an index before any other that the node could be cut along, and the node can be opened along it
// (spmd/open_rows.h), the plan of one device is written with the opened node, and that plan is distributed.
// All else follows as for every plan: here, three all-reduces of a number a row. Likewise a batch norm where
// the batch is cut: two all-reduces of a number a channel, where it would gather all activations.
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

// The nodes to open, in order. One whose result a reader needs whole along that index stays as it is: it
// would have to be gathered all the same.
std::vector<plan::NodeId> choose_openings(const plan::Graph& graph, const Signatures& signatures,
                                          const plan::Mesh& mesh, const StageUses& uses,
                                          const Exceptions& exceptions);

// The plan with these opened, each in its own phase, and the symbols and scopes of the plan under the same
// numbers. REQUIRES: the nodes are in order, and each of them can be opened.
Result<plan::Graph> open_nodes(const plan::Graph& graph, std::span<const plan::NodeId> nodes);

// Most distributions of a plan open the same nodes: what was opened lately is kept. May be asked from several
// threads at once. REQUIRES: the graph outlives it and does not change.
class Openings {
 public:
  struct Open {
    plan::Graph graph;
    Signatures signatures;  // of it

    explicit Open(plan::Graph open) : graph(std::move(open)), signatures(graph) {}
  };

  explicit Openings(const plan::Graph& graph) : graph_(graph) {}
  Result<std::shared_ptr<const Open>> of(const std::vector<plan::NodeId>& nodes);

 private:
  static constexpr std::size_t kMostKept = 8;

  const plan::Graph& graph_;
  std::mutex mutex_;
  std::map<std::vector<plan::NodeId>, std::shared_ptr<const Open>> kept_;
};

}  // namespace weft::distribute
