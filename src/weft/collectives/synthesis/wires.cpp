#include "weft/collectives/synthesis/wires.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

namespace weft::synthesis {
namespace {

using cluster::DirectedLink;
using cluster::Topology;

// The nodes reachable from `start`, along the links or against them.
std::vector<bool> reached(const Topology& topology, std::int32_t start, bool against) {
  std::vector<std::vector<std::int32_t>> next(topology.nodes.size());
  for (const DirectedLink& link : topology.links)
    next[static_cast<std::size_t>(against ? link.to : link.from)].push_back(against ? link.from : link.to);
  std::vector<bool> seen(topology.nodes.size(), false);
  std::vector<std::int32_t> list{start};
  seen[static_cast<std::size_t>(start)] = true;
  for (std::size_t i = 0; i < list.size(); ++i)
    for (const std::int32_t node : next[static_cast<std::size_t>(list[i])]) {
      if (seen[static_cast<std::size_t>(node)]) continue;
      seen[static_cast<std::size_t>(node)] = true;
      list.push_back(node);
    }
  return seen;
}

Status check_joined(const Topology& topology) {
  const std::vector<bool> from = reached(topology, 0, false), to = reached(topology, 0, true);
  const auto label = [&](std::size_t node) -> const std::string& { return topology.nodes[node].name; };
  for (std::size_t n = 0; n < topology.nodes.size(); ++n) {
    const bool device = n < static_cast<std::size_t>(topology.devices);
    if (from[n] && to[n]) continue;
    if (device && !from[n] && !to[n])
      return user_error(fmt::format("{} and {} are not connected", label(0), label(n)),
                        "a collective needs a path between any two devices");
    if (device)
      return user_error(fmt::format("there is a path from {} to {} but none back", label(from[n] ? 0 : n),
                                    label(from[n] ? n : 0)),
                        "links are directed: list both directions of a cable");
    // A switch that leads nowhere, or comes from nowhere, carries nothing and is harmless. One
    // without any device is surely a mistake.
    if (!from[n] && !to[n])
      return user_error(fmt::format("{} is not connected to any device", label(n)),
                        "give it links, or leave it out");
  }
  return {};
}

}  // namespace

Result<Wires> wires_of(const Topology& topology) {
  WEFT_TRY_STATUS(cluster::check(topology));
  if (topology.devices < 2)
    return user_error(fmt::format("a collective needs two devices or more, found {}", topology.devices));
  WEFT_TRY_STATUS(check_joined(topology));

  Wires made;
  made.gpus = topology.devices;
  made.nodes = static_cast<std::int32_t>(topology.nodes.size());
  struct Rated {
    Wire wire;
    double rate;
  };
  std::vector<Rated> rated;
  std::vector<std::int32_t> out_of(topology.nodes.size());  // node where the outgoing links start
  std::iota(out_of.begin(), out_of.end(), 0);
  for (std::size_t n = 0; n < topology.nodes.size(); ++n) {
    const double most = topology.nodes[n].bytes_per_second;
    if (most <= 0 || n < static_cast<std::size_t>(topology.devices)) continue;
    out_of[n] = made.nodes++;
    rated.push_back({{static_cast<std::int32_t>(n), out_of[n], 0, -1}, most});
  }
  for (std::size_t l = 0; l < topology.links.size(); ++l) {
    const DirectedLink& link = topology.links[l];
    rated.push_back({{out_of[static_cast<std::size_t>(link.from)], link.to, 0, static_cast<std::int32_t>(l)},
                     link.bytes_per_second / (link.shares_with >= 0 ? 2 : 1)});
  }

  double sum = 0, least = rated.front().rate;
  for (const Rated& it : rated) sum += it.rate, least = std::min(least, it.rate);
  // Flows add up to at most the sum of all rates times the number of devices.
  double unit = least < 1e3 ? least / 1e6 : 1;
  while (sum / unit * made.gpus > 0x1p60) unit *= 2;
  Amount divisor = 0;
  for (Rated& it : rated) {
    it.wire.capacity = std::llround(it.rate / unit);
    divisor = std::gcd(divisor, it.wire.capacity);
  }
  for (Rated& it : rated) {
    if (it.wire.capacity == 0) continue;  // negligible
    it.wire.capacity /= divisor;
    made.wires.push_back(it.wire);
  }
  made.unit = unit * static_cast<double>(divisor);
  return made;
}

Wires reversed(const Wires& wires) {
  Wires turned = wires;
  for (Wire& wire : turned.wires) std::swap(wire.from, wire.to);
  return turned;
}

}  // namespace weft::synthesis
