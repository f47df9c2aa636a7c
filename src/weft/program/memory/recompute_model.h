// weft/program/memory/recompute_model.h -- a graph as the solvers of recompute.h see it.
//
// Which gradients live depends on nothing but which B is next, so they are counted once: the rest of a solver
// speaks of x alone. A model is a whole graph, or a block of one: nodes that read the outside through one base.
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
  std::vector<std::vector<std::int32_t>> inputs;  // each once, those outside left out
  std::vector<std::vector<std::int32_t>> readers;
  // By node v, when B v is next: the gradients that live, and with those that B v adds.
  std::vector<std::int64_t> gradients, gradients_during;
  std::int32_t last_base_reader = -1;  // none where no node reads the base
  bool loss = true;  // the first F of the last node brings its gradient; else that lives from the start

  // What B v reads.
  std::int64_t read_by_backward(std::size_t node) const;
  // What the B that needs most takes, with the gradients that live then: no steps get by with less.
  std::int64_t needed_at_once() const;
};

// Nodes [begin, end) of the graph; what they read outside is the base, which gets a gradient of `base_gradient`.
// REQUIRES: nodes that recompute() accepts.
RecomputeModel model_of(std::span<const RecomputeNode> nodes, std::size_t begin, std::size_t end,
                        std::int64_t base_gradient, bool loss);

// Where a graph can be cut: nodes that no edge jumps over, the last of them the last node.
std::vector<std::int32_t> cut_nodes(std::span<const RecomputeNode> nodes);

}  // namespace weft::memory
