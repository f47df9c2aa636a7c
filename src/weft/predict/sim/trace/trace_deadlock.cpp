#include "weft/predict/sim/trace/trace_deadlock.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include <fmt/format.h>

namespace weft::sim {
namespace {

using Kind = TraceNode::Kind;

struct Where {
  std::int32_t rank;
  std::uint32_t node;
  friend auto operator<=>(const Where&, const Where&) = default;
};

constexpr std::size_t kMostNamed = 12;
constexpr std::int64_t kMostLooks = 1'000'000'000;  // a few seconds

class Standstill {
 public:
  Standstill(const ExecutionTrace& trace, const NodeStates& states) : trace_(trace), states_(states) {}

  Error explain() const {
    std::vector<Where> path = {first_stuck()};
    std::map<Where, std::size_t> seen = {{path[0], 0}};
    for (;;) {
      const auto next = waits_for(path.back());
      if (const auto* nobody = std::get_if<std::string>(&next))
        return user_error(fmt::format("the trace deadlocks: {} waits for {}", print(path.back()), *nobody));
      const Where where = std::get<Where>(next);
      if (const auto [found, added] = seen.emplace(where, path.size()); !added) {
        path.erase(path.begin(), path.begin() + static_cast<std::ptrdiff_t>(found->second));
        return circle(path);
      }
      path.push_back(where);
    }
  }

 private:
  const TraceNode& at(Where where) const {
    return trace_.ranks[static_cast<std::size_t>(where.rank)].nodes[where.node];
  }
  NodeState state(Where where) const { return states_[static_cast<std::size_t>(where.rank)][where.node]; }

  std::string print(Where where) const {
    const TraceNode& node = at(where);
    return fmt::format("rank {} \"{}\" (node {})", where.rank, node.name.substr(0, 80), node.id);
  }

  // Of a cycle over several ranks, the nodes that block other ranks. Nodes that only wait for
  // another node of the same rank are omitted.
  std::vector<Where> telling(const std::vector<Where>& circle) const {
    std::vector<Where> nodes;
    for (const Where where : circle)
      if (state(where) != NodeState::waiting) nodes.push_back(where);
    return nodes;
  }

  Error circle(std::vector<Where> path) const {
    const bool one_rank = std::ranges::all_of(path, [&](Where where) { return where.rank == path[0].rank; });
    if (!one_rank) path = telling(path);
    std::string text = print(path[0]);
    for (std::size_t i = 1; i < path.size() && i < kMostNamed; ++i)
      text += fmt::format("{} waits for {}", i == 1 ? "" : ", which", print(path[i]));
    if (path.size() > kMostNamed) text += fmt::format(", and so on over {} nodes", path.size());
    text += path.size() == 1 ? " waits for itself" : fmt::format(", which waits for {}", print(path[0]));
    return user_error(fmt::format("{} wait for each other: {}", one_rank ? "nodes" : "the ranks", text),
                      one_rank ? "a trace must not have cycles: check its data_deps and ctrl_deps"
                               : "issue collectives and sends in the same order on all ranks");
  }

  Where first_stuck() const {
    for (std::size_t r = 0; r < states_.size(); ++r)
      for (std::size_t n = 0; n < states_[r].size(); ++n)
        if (states_[r][n] != NodeState::done)
          return {static_cast<std::int32_t>(r), static_cast<std::uint32_t>(n)};
    return {0, 0};
  }

  // The node it waits for, or a description of an event that will never happen.
  std::variant<Where, std::string> waits_for(Where where) const {
    const TraceNode& node = at(where);
    if (looks_ > kMostLooks) return "an event that takes too long to determine";
    if (state(where) == NodeState::waiting) {
      for (const std::uint32_t before : node.after)
        if (state({where.rank, before}) != NodeState::done) return Where{where.rank, before};
    }
    if (state(where) == NodeState::ready) {
      // Another communication holds the resource; a compute node would have finished.
      const auto& states = states_[static_cast<std::size_t>(where.rank)];
      looks_ += static_cast<std::int64_t>(states.size());
      for (std::uint32_t n = 0; n < states.size(); ++n) {
        const TraceNode& other = at({where.rank, n});
        const bool communicates = other.kind == Kind::send || other.kind == Kind::collective;
        if (states[n] == NodeState::running && communicates && other.on_cpu == node.on_cpu)
          return Where{where.rank, n};
      }
    }
    if (node.kind == Kind::receive) {
      return find(
          node.peer,
          fmt::format("a message from rank {} with tag {}, which never sends it", node.peer, node.tag),
          [&](const TraceNode& other) {
            return other.kind == Kind::send && other.peer == where.rank && other.tag == node.tag;
          });
    }
    const auto others = [&](const TraceNode& other) {
      return other.kind == Kind::collective && other.group == node.group &&
             other.collective == node.collective && other.bytes == node.bytes;
    };
    const auto stuck_elsewhere = [&](std::int32_t rank) { return rank != where.rank && !runs(rank, others); };
    const std::string what = fmt::format(
        "an {} of {} bytes{}", name(node.collective), node.bytes,
        node.group < 0 ? "" : " in group " + trace_.groups[static_cast<std::size_t>(node.group)].name);
    for (const std::int32_t rank : members(node))
      if (stuck_elsewhere(rank))
        return find(rank, fmt::format("rank {}, which never joins {}", rank, what), others);
    return fmt::format("{}, which no other rank joins in that order", what);
  }

  std::vector<std::int32_t> members(const TraceNode& node) const {
    if (node.group >= 0) return trace_.groups[static_cast<std::size_t>(node.group)].ranks;
    std::vector<std::int32_t> all;
    for (std::size_t r = 0; r < trace_.ranks.size(); ++r) all.push_back(static_cast<std::int32_t>(r));
    return all;
  }

  template <class Match>
  bool runs(std::int32_t rank, const Match& match) const {
    const auto& states = states_[static_cast<std::size_t>(rank)];
    looks_ += static_cast<std::int64_t>(states.size());
    for (std::uint32_t n = 0; n < states.size(); ++n)
      if (states[n] == NodeState::running && match(at({rank, n}))) return true;
    return false;
  }

  template <class Match>
  std::variant<Where, std::string> find(std::int32_t rank, std::string otherwise, const Match& match) const {
    if (rank >= 0 && static_cast<std::size_t>(rank) < states_.size()) {
      const auto& states = states_[static_cast<std::size_t>(rank)];
      looks_ += static_cast<std::int64_t>(states.size());
      for (std::uint32_t n = 0; n < states.size(); ++n) {
        const bool to_come = states[n] == NodeState::waiting || states[n] == NodeState::ready;
        if (to_come && match(at({rank, n}))) return Where{rank, n};
      }
    }
    return otherwise;
  }

  const ExecutionTrace& trace_;
  const NodeStates& states_;
  mutable std::int64_t looks_ = 0;
};

}  // namespace

Error standstill(const ExecutionTrace& trace, const NodeStates& states) {
  return Standstill(trace, states).explain();
}

}  // namespace weft::sim
