// weft/collectives/check/order_edges.h -- builds order graphs from nodes, chains and edges.
#pragma once
#include <cstdint>
#include <vector>

#include "weft/collectives/check/happens_before.h"

namespace weft::collective {

class OrderEdges {
 public:
  std::int32_t new_chain();
  std::int32_t add_node();  // not in a chain
  std::int32_t add_to_chain(std::int32_t chain);

  void add(std::int32_t from, std::int32_t to, bool relaxed = false) {
    edges_.push_back({from, to, relaxed});
  }
  // An edge for play() only, not for graph(): the program order of a block's steps.
  void add_program_order(std::int32_t from, std::int32_t to) { program_order_.push_back({from, to, false}); }

  // Renumbers the nodes so that those of a chain are contiguous; returns the new numbers. Nothing
  // can be added afterwards.
  std::vector<std::int32_t> renumber();
  HappensBefore graph(bool with_relaxed) const;
  // A topological order of the nodes. It is shorter than the number of nodes if there is a cycle.
  std::vector<std::int32_t> play() const;

 private:
  struct Edge {
    std::int32_t from, to;
    bool relaxed;
  };
  std::int32_t nodes_ = 0;
  std::vector<std::vector<std::int32_t>> chains_;
  std::vector<Edge> edges_, program_order_;
  std::vector<HappensBefore::Thread> threads_;
};

}  // namespace weft::collective
