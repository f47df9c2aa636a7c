#include "weft/base/max_flow.h"

#include <algorithm>

namespace weft {

std::int32_t MaxFlow::add_node() {
  heads_.push_back(-1);
  return nodes() - 1;
}

std::int32_t MaxFlow::add_arc(std::int32_t from, std::int32_t to, Amount capacity) {
  const auto number = static_cast<std::int32_t>(arcs_.size());
  arcs_.push_back({to, heads_[static_cast<std::size_t>(from)], capacity, capacity});
  heads_[static_cast<std::size_t>(from)] = number;
  arcs_.push_back({from, heads_[static_cast<std::size_t>(to)], 0, 0});
  heads_[static_cast<std::size_t>(to)] = number + 1;
  return number;
}

void MaxFlow::reset() {
  for (Arc& arc : arcs_) arc.left = arc.capacity;
}

// Computes the level of every node: its distance from the source along arcs with residual capacity.
// Returns false if the sink is not reachable.
bool MaxFlow::measure(std::int32_t source, std::int32_t sink) {
  levels_.assign(heads_.size(), -1);
  levels_[static_cast<std::size_t>(source)] = 0;
  queue_.assign(1, source);
  for (std::size_t i = 0; i < queue_.size(); ++i) {
    const std::int32_t node = queue_[i];
    for (std::int32_t a = heads_[static_cast<std::size_t>(node)]; a >= 0; a = at(a).next) {
      const Arc& arc = at(a);
      std::int32_t& level = levels_[static_cast<std::size_t>(arc.to)];
      if (arc.left <= 0 || level >= 0) continue;
      level = levels_[static_cast<std::size_t>(node)] + 1;
      if (arc.to == sink) return true;
      queue_.push_back(arc.to);
    }
  }
  return false;
}

Amount MaxFlow::push(std::int32_t node, std::int32_t sink, Amount most) {
  if (node == sink) return most;
  Amount pushed = 0;
  for (std::int32_t& a = turn_[static_cast<std::size_t>(node)]; a >= 0; a = at(a).next) {
    const std::int32_t to = at(a).to;
    if (at(a).left <= 0 ||
        levels_[static_cast<std::size_t>(to)] != levels_[static_cast<std::size_t>(node)] + 1)
      continue;
    const Amount more = push(to, sink, std::min(most - pushed, at(a).left));
    at(a).left -= more;
    at(a ^ 1).left += more;
    pushed += more;
    if (pushed == most) return pushed;
  }
  return pushed;
}

Amount MaxFlow::run(std::int32_t source, std::int32_t sink, Amount most) {
  Amount flow = 0;
  while (flow < most && measure(source, sink)) {
    turn_ = heads_;
    flow += push(source, sink, most - flow);
  }
  return flow;
}

}  // namespace weft
