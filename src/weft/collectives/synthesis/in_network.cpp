#include "weft/collectives/synthesis/in_network.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "weft/collectives/synthesis/index.h"
#include "weft/collectives/synthesis/optimum.h"
#include "weft/collectives/synthesis/wires.h"

namespace weft::synthesis {
namespace {

bool computes(const cluster::Node& node) { return node.copies && node.reduces; }

// Hops from the node along the wires; -1: not reached.
std::vector<std::int32_t> hops_from(const Wires& wires, std::int32_t start) {
  std::vector<std::vector<std::int32_t>> next(at(wires.nodes));
  for (const Wire& wire : wires.wires) next[at(wire.from)].push_back(wire.to);
  std::vector<std::int32_t> hops(at(wires.nodes), -1), list{start};
  hops[at(start)] = 0;
  for (std::size_t i = 0; i < list.size(); ++i)
    for (const std::int32_t node : next[at(list[i])]) {
      if (hops[at(node)] >= 0) continue;
      hops[at(node)] = hops[at(list[i])] + 1;
      list.push_back(node);
    }
  return hops;
}

// Removes the wires of nodes that only forward and have more outgoing than incoming capacity.
// Without copying, each byte leaves as often as it arrives, so the excess cannot be used.
void drop_funnels(Wires& wires) {
  for (bool more = true; more;) {
    std::vector<Amount> spare(at(wires.nodes), 0);
    for (const Wire& wire : wires.wires)
      spare[at(wire.to)] += wire.capacity, spare[at(wire.from)] -= wire.capacity;
    more =
        std::erase_if(wires.wires, [&](const Wire& wire) {
          const auto is_funnel = [&](std::int32_t node) { return node >= wires.gpus && spare[at(node)] < 0; };
          return is_funnel(wire.from) || is_funnel(wire.to);
        }) > 0;
  }
}

// The rate at which the root can send to all over wires that lead away from it.
double rate_away(Wires wires, std::int32_t root, const Deadline& deadline) {
  const std::vector<std::int32_t> hops = hops_from(wires, root);
  std::erase_if(wires.wires, [&](const Wire& wire) { return hops[at(wire.from)] >= hops[at(wire.to)]; });
  drop_funnels(wires);
  const std::vector<std::int32_t> left = hops_from(wires, root);
  for (std::int32_t v = 0; v < wires.gpus; ++v)
    if (left[at(v)] < 0) return 0;
  const Optimum found = find_optimum(wires, {root}, deadline);
  return found.exact ? found.rate.value() * wires.unit : 0;
}

}  // namespace

std::optional<InNetwork> reduce_in_network(const cluster::Topology& topology, const Deadline& deadline) {
  // Computing switches count as devices: trees reach them too.
  std::vector<std::int32_t> order(topology.nodes.size());
  std::iota(order.begin(), order.end(), 0);
  const auto rank = [&](std::int32_t node) {
    if (node < topology.devices) return 0;
    return computes(topology.nodes[at(node)]) ? 1 : 2;
  };
  std::ranges::stable_sort(order, {}, rank);
  cluster::Topology sorted = topology;
  std::vector<std::int32_t> place(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    place[at(order[i])] = static_cast<std::int32_t>(i);
    sorted.nodes[i] = topology.nodes[at(order[i])];
    if (rank(order[i]) != 1) continue;
    sorted.nodes[i].kind = cluster::NodeKind::device;
    ++sorted.devices;
  }
  if (sorted.devices == topology.devices) return std::nullopt;
  for (cluster::DirectedLink& link : sorted.links)
    link.from = place[at(link.from)], link.to = place[at(link.to)];
  const Result<Wires> wires = wires_of(sorted);
  if (!wires.ok()) return std::nullopt;

  std::optional<InNetwork> best;
  for (std::int32_t root = topology.devices; root < sorted.devices && !deadline.over(); ++root) {
    const double rate =
        std::min(rate_away(*wires, root, deadline), rate_away(reversed(*wires), root, deadline));
    if (rate > 0 && (!best || rate > best->rate)) best = InNetwork{order[at(root)], rate};
  }
  return best;
}

}  // namespace weft::synthesis
