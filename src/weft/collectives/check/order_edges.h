// weft/collectives/check/order_edges.h -- nodes in chains and edges between them, collected one by one, then two graphs
// and one run through them.
#pragma once
#include <cstdint>
#include <vector>

#include "weft/collectives/check/happens_before.h"

namespace weft::collective {

class OrderEdges {
 public:
  std::int32_t new_chain();
  std::int32_t add_node();  // of no chain
  std::int32_t add_to_chain(std::int32_t chain);

  void add(std::int32_t from, std::int32_t to, bool relaxed = false) {
    edges_.push_back({from, to, relaxed});
  }
  // Of a run that is played, and of no graph: a block's steps as they are written.
  void add_as_written(std::int32_t from, std::int32_t to) { as_written_.push_back({from, to, false}); }

  // Nodes get new numbers, those of a chain side by side: the new number of each. Nothing is added afterwards.
  std::vector<std::int32_t> renumber();
  HappensBefore graph(bool with_relaxed) const;
  // Every node after those it waits for; shorter than there are nodes where some wait for each other.
  std::vector<std::int32_t> play() const;

 private:
  struct Edge {
    std::int32_t from, to;
    bool relaxed;
  };
  std::int32_t nodes_ = 0;
  std::vector<std::vector<std::int32_t>> chains_;
  std::vector<Edge> edges_, as_written_;
  std::vector<HappensBefore::Thread> threads_;
};

}  // namespace weft::collective
