#include "weft/predict/sim/trace/trace_check.h"

#include <algorithm>

#include <fmt/format.h>

namespace weft::sim {
namespace {

Status check_ranks(const ExecutionTrace& trace, const TraceNetwork& network) {
  if (trace.ranks.size() == static_cast<std::size_t>(network.ranks())) return {};
  return user_error(
      fmt::format("the network has {} ranks, the trace {}", network.ranks(), trace.ranks.size()),
      "give a network with as many ranks as there are .et files");
}

Status check(const TraceSystem& system) {
  constexpr std::int32_t kMostChunks = 1 << 16;
  if (system.chunks < 1 || system.chunks > kMostChunks)
    return user_error(
        fmt::format("preferred-dataset-splits: expected 1 to {}, found {}", kMostChunks, system.chunks));
  if (system.active_chunks < 1) return user_error("active-chunks-per-dimension: expected at least 1");
  if (system.communications < 1) return user_error("concurrent communications: expected at least 1");
  return {};
}

Result<GroupPositions> find_places(const ExecutionTrace& trace, const TraceNetwork& network) {
  GroupPositions places;
  for (const RankGroup& group : trace.groups) {
    auto& members = places.emplace_back();
    for (std::size_t i = 0; i < group.ranks.size(); ++i)
      if (group.ranks[i] < 0 || group.ranks[i] >= network.ranks() ||
          !members.emplace(group.ranks[i], i).second)
        return user_error(fmt::format("group {} lists rank {} twice, or the network does not have it",
                                      group.name, group.ranks[i]));
  }
  return places;
}

Status check_node(const ExecutionTrace& trace, const TraceNetwork& network, const GroupPositions& places,
                  std::int32_t rank, const TraceNode& node) {
  using Kind = TraceNode::Kind;
  const auto complain = [&](std::string text) {
    return user_error(
        fmt::format("rank {} \"{}\" (node {}): {}", rank, node.name.substr(0, 80), node.id, text));
  };
  const auto& nodes = trace.ranks[static_cast<std::size_t>(rank)].nodes;
  if (std::ranges::any_of(node.after, [&](std::uint32_t before) { return before >= nodes.size(); }))
    return complain("depends on a node that does not exist");
  const bool pairs = node.kind == Kind::send || node.kind == Kind::receive;
  if (pairs && (node.peer < 0 || node.peer >= network.ranks()))
    return complain(fmt::format("the network has no rank {}", node.peer));
  if (node.kind == Kind::collective && node.group >= 0) {
    if (static_cast<std::size_t>(node.group) >= trace.groups.size())
      return complain("its group is not known");
    if (!places[static_cast<std::size_t>(node.group)].contains(rank))
      return complain(fmt::format("the rank is not in group {}",
                                  trace.groups[static_cast<std::size_t>(node.group)].name));
  }
  return {};
}

}  // namespace

Result<GroupPositions> check(const ExecutionTrace& trace, const TraceNetwork& network,
                             const TraceSystem& system) {
  WEFT_TRY_STATUS(check(system));
  WEFT_TRY_STATUS(check_ranks(trace, network));
  WEFT_TRY(places, find_places(trace, network));
  for (std::size_t r = 0; r < trace.ranks.size(); ++r)
    for (const TraceNode& node : trace.ranks[r].nodes)
      WEFT_TRY_STATUS(check_node(trace, network, places, static_cast<std::int32_t>(r), node));
  return places;
}

}  // namespace weft::sim
