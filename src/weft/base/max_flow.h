// weft/base/max_flow.h -- maximum flow and minimum cut between two nodes.
//
//        3          2
//   0 ------> 1 ------> 2       max flow 2: the minimum cut has {0, 1} on one side
//
// Dinic's algorithm with integer capacities. Arcs come in pairs, an arc and its reverse (the next
// number); `left` is an arc's residual capacity. run() adds to the current flow; reset() removes
// all flow.
#pragma once
#include <cstdint>
#include <limits>
#include <vector>

namespace weft {

using Amount = std::int64_t;
inline constexpr Amount kNoLimit = std::numeric_limits<Amount>::max() / 4;

class MaxFlow {
 public:
  explicit MaxFlow(std::int32_t nodes) : heads_(static_cast<std::size_t>(nodes), -1) {}

  std::int32_t add_node();
  std::int32_t add_arc(std::int32_t from, std::int32_t to, Amount capacity);

  // Adds up to `most` flow and returns how much was added.
  Amount run(std::int32_t source, std::int32_t sink, Amount most = kNoLimit);
  // After a run that stayed below its limit: whether the node is reachable from the source.
  bool on_source_side(std::int32_t node) const { return levels_[static_cast<std::size_t>(node)] >= 0; }

  void reset();
  // Takes effect with the next reset().
  void set_capacity(std::int32_t arc, Amount capacity) { at(arc).capacity = capacity; }
  Amount capacity(std::int32_t arc) const { return arcs_[static_cast<std::size_t>(arc)].capacity; }
  // The flow on an arc after a run.
  Amount flow(std::int32_t arc) const {
    const Arc& it = arcs_[static_cast<std::size_t>(arc)];
    return it.capacity - it.left;
  }
  std::int32_t nodes() const { return static_cast<std::int32_t>(heads_.size()); }

 private:
  struct Arc {
    std::int32_t to = 0, next = -1;
    Amount left = 0, capacity = 0;
  };

  Arc& at(std::int32_t arc) { return arcs_[static_cast<std::size_t>(arc)]; }
  bool measure(std::int32_t source, std::int32_t sink);
  Amount push(std::int32_t node, std::int32_t sink, Amount most);

  std::vector<Arc> arcs_;
  std::vector<std::int32_t> heads_, levels_, turn_, queue_;
};

}  // namespace weft
