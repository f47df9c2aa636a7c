#include "weft/collectives/synthesis/tree_schedule.h"

#include <algorithm>
#include <map>
#include <queue>
#include <tuple>
#include <utility>

namespace weft::synthesis {
namespace {

constexpr std::size_t kLooks = 1024;  // events between two clock checks

struct TimedHop {
  std::int32_t edge = 0, chunk = 0, piece = 0;
  std::int32_t after = -1;  // the hop that delivers the data it sends
  double due = 0;
};

class TreeTimer {
 public:
  TreeTimer(const StepNetwork& network, double chunk_bytes)
      : network_(network),
        times_(network, chunk_bytes),
        free_(network.limits.size(), 0),
        ready_(network.edges.size()),
        is_touched_(network.edges.size(), 0) {
    for (std::size_t e = 0; e < network.edges.size(); ++e)
      ways_[{network.edges[e].from, network.edges[e].to}].edges.push_back(static_cast<std::int32_t>(e));
  }

  bool add(const std::vector<Tree>& trees, std::int32_t pieces) {
    std::int64_t each = 0;
    for (const Tree& tree : trees) each += tree.root == trees.front().root ? tree.times : 0;
    const bool rooted = trees.front().root == trees.back().root;
    std::int64_t next = 0;
    std::int32_t root = -1;
    for (const Tree& tree : trees) {
      if (tree.root != root) next = 0;
      root = tree.root;
      for (std::int64_t t = 0; t < tree.times; ++t, ++next)
        for (std::int32_t piece = 0; piece < pieces; ++piece) {
          const std::int64_t chunk = (rooted ? 0 : root * each * pieces) + piece * each + next;
          if (!add_tree(tree, static_cast<std::int32_t>(chunk), piece)) return false;
        }
    }
    find_dues(pieces);
    return true;
  }

  std::optional<TimeSchedule> play(const StepClock& clock) {
    std::vector<std::int32_t> first(hops_.size(), -1), sibling(hops_.size(), -1);
    for (std::size_t h = hops_.size(); h-- > 0;) {
      if (hops_[h].after < 0) {
        make_ready(static_cast<std::int32_t>(h));
        continue;
      }
      sibling[h] = first[at(hops_[h].after)];
      first[at(hops_[h].after)] = static_cast<std::int32_t>(h);
    }
    TimeSchedule made;
    start_what_can(0, made);
    for (std::size_t looks = 0; !events_.empty(); ++looks) {
      if (looks % kLooks == 0 && clock.over()) return std::nullopt;
      const double now = std::get<0>(events_.top());
      while (!events_.empty() && !is_later(std::get<0>(events_.top()), now)) {
        const auto [time, is_arrival, number] = events_.top();
        events_.pop();
        if (is_arrival) {
          for (std::int32_t h = first[at(number)]; h >= 0; h = sibling[at(h)]) make_ready(h);
        } else {
          for (const std::int32_t edge : network_.limits[at(number)].edges) touch(edge);
        }
      }
      start_what_can(now, made);
    }
    std::ranges::sort(made.sends);
    return made;
  }

 private:
  struct Ways {
    std::vector<std::int32_t> edges;  // parallel edges, through different switches, alternate
    std::size_t turn = 0;
  };

  bool add_tree(const Tree& tree, std::int32_t chunk, std::int32_t piece) {
    std::map<std::int32_t, std::int32_t> brings;  // per device: the hop that delivers the chunk there
    for (const TreeEdge& edge : tree.edges) {
      const auto ways = ways_.find({edge.from, edge.to});
      if (ways == ways_.end()) return false;
      TimedHop hop;
      hop.edge = ways->second.edges[ways->second.turn++ % ways->second.edges.size()];
      hop.chunk = chunk;
      hop.piece = piece;
      if (const auto before = brings.find(edge.from); before != brings.end()) hop.after = before->second;
      brings[edge.to] = static_cast<std::int32_t>(hops_.size());
      hops_.push_back(hop);
    }
    return true;
  }

  void find_dues(std::int32_t pieces) {
    std::vector<double> work(network_.limits.size(), 0);
    for (const TimedHop& hop : hops_)
      for (const std::int32_t limit : times_.limits[at(hop.edge)]) work[at(limit)] += times_.busy[at(limit)];
    const double turn = *std::ranges::max_element(work) / pieces;
    for (TimedHop& hop : hops_) hop.due = hop.piece * turn;
    for (std::size_t h = hops_.size(); h-- > 0;)
      if (const std::int32_t before = hops_[h].after; before >= 0)
        hops_[at(before)].due =
            std::min(hops_[at(before)].due, hops_[h].due - times_.takes[at(hops_[at(before)].edge)]);
  }

  void make_ready(std::int32_t hop) {
    const std::int32_t edge = hops_[at(hop)].edge;
    ready_[at(edge)].emplace(hops_[at(hop)].due, hop);
    touch(edge);
  }

  void touch(std::int32_t edge) {
    if (ready_[at(edge)].empty() || is_touched_[at(edge)] != 0) return;
    is_touched_[at(edge)] = 1;
    touched_.push_back(edge);
  }

  void start_what_can(double now, TimeSchedule& made) {
    std::vector<std::pair<double, std::int32_t>> order;
    for (const std::int32_t edge : touched_) {
      order.emplace_back(ready_[at(edge)].top().first, edge);
      is_touched_[at(edge)] = 0;
    }
    touched_.clear();
    std::ranges::sort(order);
    for (const auto& [due, edge] : order) {
      const auto& limits = times_.limits[at(edge)];
      if (std::ranges::any_of(limits, [&](std::int32_t limit) { return is_later(free_[at(limit)], now); }))
        continue;
      const std::int32_t hop = ready_[at(edge)].top().second;
      ready_[at(edge)].pop();
      for (const std::int32_t limit : limits) {
        free_[at(limit)] = now + times_.busy[at(limit)];
        events_.emplace(free_[at(limit)], false, limit);
      }
      const double arrives = now + times_.takes[at(edge)];
      made.sends.push_back({now, arrives, edge, hops_[at(hop)].chunk});
      made.finish = std::max(made.finish, arrives);
      events_.emplace(arrives, true, hop);
    }
  }

  const StepNetwork& network_;
  const EdgeTimes times_;
  std::vector<double> free_;  // per limit
  std::vector<TimedHop> hops_;
  std::map<std::pair<std::int32_t, std::int32_t>, Ways> ways_;
  using Ready = std::pair<double, std::int32_t>;                                       // due, hop
  std::vector<std::priority_queue<Ready, std::vector<Ready>, std::greater<>>> ready_;  // per edge
  std::vector<std::int32_t> touched_;  // edges with a ready hop whose limits may have become free
  std::vector<char> is_touched_;
  using Event = std::tuple<double, bool, std::int32_t>;  // time, hop arrived or limit freed, number
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
};

}  // namespace

std::optional<TimeSchedule> tree_schedule(const StepNetwork& network, const std::vector<Tree>& trees,
                                          std::int32_t pieces, double chunk_bytes, const StepClock& clock) {
  TreeTimer timer(network, chunk_bytes);
  if (trees.empty() || !timer.add(trees, pieces)) return std::nullopt;
  return timer.play(clock);
}

}  // namespace weft::synthesis
