// weft/predict/sim/trace/chunk_gates.h -- collective algorithms as gates that open on messages.
//
//   ring, 3 ranks, reduce-scatter    gate 0  waits for nothing     sends a third to the right, for its gate 1
//                                    gate 1  waits for 1 message   sends what it reduced, for gate 2
//                                    gate 2  waits for 1 message   the end
//
// A rank's gates open in order, each when the messages it needs have arrived. Every message names
// the receiver's gate, so that a rank may be ahead of its neighbours.
#pragma once
#include <bit>
#include <cstdint>

#include "weft/predict/sim/trace/execution_trace.h"
#include "weft/predict/sim/trace/trace_system.h"

namespace weft::sim {

// One phase of a chunk: a collective along one dimension, or among the ranks of a group.
struct ChunkPhase {
  TraceAlgorithm algorithm = TraceAlgorithm::ring;
  TraceNode::Collective collective = TraceNode::Collective::all_reduce;
  std::int32_t dimension = -1;  // -1: among the group's ranks
  std::int32_t ranks = 1;
  double bytes = 0;       // of the chunk at the start of the phase
  bool mirrored = false;  // in a double binary tree: the second tree

  std::int32_t gates() const;
  double bytes_after() const;
  // How many messages open a rank's gate, whether they are reduced first, and how large they are.
  std::int32_t needs(std::int32_t rank, std::int32_t gate) const;
  bool reduces(std::int32_t gate) const;
  double received_bytes(std::int32_t gate) const;  // per message

  // Calls emit(to, bytes, gate of the receiver) for each message that is sent when a gate opens.
  template <class Emit>
  void sends(std::int32_t rank, std::int32_t gate, Emit&& emit) const;

 private:
  struct TreePlace {
    std::int32_t parent = -1, children[2] = {-1, -1};
    std::int32_t degree() const { return (children[0] >= 0) + (children[1] >= 0); }
  };
  TreePlace tree_place(std::int32_t rank) const;
  std::int32_t levels() const { return std::bit_width(static_cast<std::uint32_t>(ranks)) - 1; }
  double halving_bytes(std::int32_t step) const;
  std::int32_t halving_distance(std::int32_t step) const;
  double ring_bytes() const {
    return collective == TraceNode::Collective::all_gather ? bytes : bytes / ranks;
  }
};

template <class Emit>
void ChunkPhase::sends(std::int32_t rank, std::int32_t gate, Emit&& emit) const {
  if (algorithm == TraceAlgorithm::double_binary_tree) {
    const TreePlace place = tree_place(rank);
    const bool root = place.parent < 0;
    if (!root && gate == 0) return emit(place.parent, bytes, 0);
    if (root && gate == 1) return;
    for (const std::int32_t child : place.children)
      if (child >= 0) emit(child, bytes, 1);
    return;
  }
  if (gate + 1 >= gates()) return;
  switch (algorithm) {
    case TraceAlgorithm::ring: return emit((rank + 1) % ranks, ring_bytes(), gate + 1);
    case TraceAlgorithm::direct:
      for (std::int32_t k = 1; k < ranks; ++k) emit((rank + k) % ranks, ring_bytes(), gate + 1);
      return;
    default: return emit(rank ^ halving_distance(gate), halving_bytes(gate), gate + 1);
  }
}

}  // namespace weft::sim
