#include "weft/plan/cluster/topology.h"

#include <cmath>

#include <fmt/format.h>

namespace weft::cluster {

std::int32_t Topology::add_node(NodeKind kind, std::string node_name) {
  nodes.push_back({.kind = kind, .name = std::move(node_name)});
  if (kind == NodeKind::device) ++devices;
  return static_cast<std::int32_t>(nodes.size() - 1);
}

std::int32_t Topology::add_link(std::int32_t from, std::int32_t to, double bytes_per_second,
                                double latency_seconds) {
  links.push_back({from, to, bytes_per_second, latency_seconds, -1});
  return static_cast<std::int32_t>(links.size() - 1);
}

std::int32_t Topology::add_cable(std::int32_t a, std::int32_t b, double bytes_per_second,
                                 double latency_seconds) {
  const std::int32_t there = add_link(a, b, bytes_per_second, latency_seconds);
  add_link(b, a, bytes_per_second, latency_seconds);
  return there;
}

Status check(const Topology& topology) {
  const auto nodes = static_cast<std::int64_t>(topology.nodes.size());
  const auto links = static_cast<std::int64_t>(topology.links.size());
  if (nodes > kMostNodes || links > kMaxLinks)
    return user_error(
        fmt::format("topology {} is too large: {} nodes and {} links", topology.name, nodes, links),
        fmt::format("at most {} nodes and {} links", kMostNodes, kMaxLinks));
  for (std::int64_t n = 0; n < nodes; ++n) {
    const Node& node = topology.nodes[static_cast<std::size_t>(n)];
    if ((node.kind == NodeKind::device) != (n < topology.devices))
      return user_error(fmt::format("devices come first in a topology, found {} at {}", node.name, n));
    if (!(node.bytes_per_second >= 0) || !std::isfinite(node.bytes_per_second))
      return user_error(fmt::format("{} forwards {} bytes per second", node.name, node.bytes_per_second));
  }
  for (std::int64_t l = 0; l < links; ++l) {
    const DirectedLink& link = topology.links[static_cast<std::size_t>(l)];
    if (link.from < 0 || link.from >= nodes || link.to < 0 || link.to >= nodes || link.from == link.to)
      return user_error(fmt::format("link {} connects {} and {}", l, link.from, link.to),
                        fmt::format("it must connect two different nodes of {}", nodes));
    if (!(link.bytes_per_second > 0) || !std::isfinite(link.bytes_per_second))
      return user_error(fmt::format("link {} must have a positive bandwidth, found {} bytes per second", l,
                                    link.bytes_per_second));
    // With at most one hour per link, the sum over any route stays exact in integer picoseconds.
    if (!(link.latency_seconds >= 0) || !(link.latency_seconds <= 3600))
      return user_error(fmt::format("link {} has a latency of {} s", l, link.latency_seconds),
                        "a latency must be from 0 to 1 hour");
    const std::int32_t other = link.shares_with;
    if (other != -1 && (other < 0 || other >= links || other == l ||
                        topology.links[static_cast<std::size_t>(other)].shares_with != l))
      return user_error(fmt::format("link {} shares its cable with {}, but not the reverse", l, other));
  }
  return {};
}

std::string print(const Topology& topology, const DirectedLink& link) {
  const auto label = [&](std::int32_t node) { return topology.nodes[static_cast<std::size_t>(node)].name; };
  return fmt::format("{} to {}", label(link.from), label(link.to));
}

}  // namespace weft::cluster
