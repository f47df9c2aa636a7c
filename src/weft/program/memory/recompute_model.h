// weft/program/memory/recompute_model.h -- the input of the recomputation solvers.
//
// Which gradients are held depends only on the next B, so their memory is precomputed, and solvers
// deal only with x. A model is a whole graph, or a block of one: nodes that read the rest through a
// single base.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "weft/program/memory/recompute.h"

namespace weft::memory {

struct RecomputeModel {
  std::size_t nodes = 0;
  std::vector<double> forward;
  std::vector<std::int64_t> size;
  std::vector<std::int64_t> forward_bytes;        // what F adds while it runs: the size, or more
  std::vector<std::vector<std::int32_t>> inputs;  // without duplicates and without outside nodes
  std::vector<std::vector<std::int32_t>> readers;
  // By node v, when B v is next: bytes of gradients held, and including those that B v adds.
  std::vector<std::int64_t> gradients, gradients_during;
  std::int32_t last_base_reader = -1;  // -1 if no node reads the base
  bool loss = true;  // the first F of the last node makes its gradient; else it is there before

  // Bytes that B v reads.
  std::int64_t read_by_backward(std::size_t node) const;
  // Memory of the largest B with the gradients held then: a lower bound for any steps.
  std::int64_t needed_at_once() const;
};

// Nodes [begin, end) of the graph. What they read outside is the base, whose gradient has size
// `base_gradient`. REQUIRES: nodes that recompute() accepts.
RecomputeModel model_of(std::span<const RecomputeNode> nodes, std::size_t begin, std::size_t end,
                        std::int64_t base_gradient, bool loss);

// Nodes that no edge bypasses, where a graph can be split; the last of them is the last node.
std::vector<std::int32_t> cut_nodes(std::span<const RecomputeNode> nodes);

}  // namespace weft::memory
