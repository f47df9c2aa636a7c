#include "weft/plan/cluster/routes.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <queue>
#include <tuple>

namespace weft::cluster {
namespace {

// Lists the links by one of their ends: links of node n are at [first[n], first[n + 1]) of `list`.
void list_by(const Topology& topology, std::int32_t DirectedLink::*end, std::vector<std::int32_t>& first,
             std::vector<std::int32_t>& list) {
  first.assign(topology.nodes.size() + 1, 0);
  list.resize(topology.links.size());
  for (const DirectedLink& link : topology.links) ++first[static_cast<std::size_t>(link.*end) + 1];
  for (std::size_t n = 1; n < first.size(); ++n) first[n] += first[n - 1];
  std::vector<std::int32_t> next(first.begin(), first.end() - 1);
  for (std::size_t l = 0; l < topology.links.size(); ++l)
    list[static_cast<std::size_t>(next[static_cast<std::size_t>(topology.links[l].*end)]++)] =
        static_cast<std::int32_t>(l);
}

}  // namespace

Routes::Routes(const Topology& topology) : topology_(topology) {
  picoseconds_.reserve(topology.links.size());
  for (const DirectedLink& link : topology.links)
    picoseconds_.push_back(std::llround(link.latency_seconds * 1e12));
  list_by(topology, &DirectedLink::from, first_out_, out_);
  list_by(topology, &DirectedLink::to, first_in_, in_);
}

// Whether a shortest route from the link's start to the target begins with it, ignoring width.
bool Routes::is_on_shortest_route(std::int32_t link) const {
  const DirectedLink& wire = topology_.links[static_cast<std::size_t>(link)];
  const Distance &here = distances_[static_cast<std::size_t>(wire.from)],
                 &there = distances_[static_cast<std::size_t>(wire.to)];
  return there.picoseconds >= 0 && here.hops == there.hops + 1 &&
         here.picoseconds == there.picoseconds + picoseconds_[static_cast<std::size_t>(link)];
}

void Routes::measure(std::int32_t target) {
  target_ = target;
  distances_.assign(topology_.nodes.size(), {});
  distances_[static_cast<std::size_t>(target)] = {0, 0, std::numeric_limits<double>::infinity()};
  using Reached = std::tuple<std::int64_t, std::int32_t, std::int32_t>;  // picoseconds, hops, node
  std::priority_queue<Reached, std::vector<Reached>, std::greater<>> queue;
  queue.emplace(0, 0, target);
  while (!queue.empty()) {
    const auto [picoseconds, hops, node] = queue.top();
    queue.pop();
    Distance& here = distances_[static_cast<std::size_t>(node)];
    if (std::tie(picoseconds, hops) != std::tie(here.picoseconds, here.hops)) continue;
    // Nodes leave the queue in order of distance from the target, so the widths ahead are final.
    const auto n = static_cast<std::size_t>(node);
    for (std::int32_t k = first_out_[n]; node != target && k < first_out_[n + 1]; ++k) {
      const std::int32_t l = out_[static_cast<std::size_t>(k)];
      if (!is_on_shortest_route(l)) continue;
      const DirectedLink& wire = topology_.links[static_cast<std::size_t>(l)];
      here.width = std::max(
          here.width, std::min(wire.bytes_per_second, distances_[static_cast<std::size_t>(wire.to)].width));
    }
    for (std::int32_t k = first_in_[n]; k < first_in_[n + 1]; ++k) {
      const auto l = static_cast<std::size_t>(in_[static_cast<std::size_t>(k)]);
      const std::int32_t from = topology_.links[l].from;
      Distance& there = distances_[static_cast<std::size_t>(from)];
      const std::int64_t sum = picoseconds + picoseconds_[l];
      if (there.picoseconds >= 0 && std::tuple(there.picoseconds, there.hops) <= std::tuple(sum, hops + 1))
        continue;
      there = {sum, hops + 1, 0};
      queue.emplace(sum, hops + 1, from);
    }
  }
}

std::optional<std::vector<std::int32_t>> Routes::route(std::int32_t from, std::int32_t to,
                                                       std::uint64_t which) {
  if (to != target_) measure(to);
  if (distances_[static_cast<std::size_t>(from)].picoseconds < 0) return std::nullopt;
  std::vector<std::int32_t> links;
  std::vector<std::int32_t> choices;
  for (std::int32_t node = from; node != to;) {
    const auto n = static_cast<std::size_t>(node);
    const double width = distances_[n].width;
    choices.clear();
    for (std::int32_t k = first_out_[n]; k < first_out_[n + 1]; ++k) {
      const std::int32_t l = out_[static_cast<std::size_t>(k)];
      const DirectedLink& wire = topology_.links[static_cast<std::size_t>(l)];
      if (is_on_shortest_route(l) &&
          std::min(wire.bytes_per_second, distances_[static_cast<std::size_t>(wire.to)].width) >= width)
        choices.push_back(l);
    }
    const std::int32_t chosen = choices[which % choices.size()];
    which /= choices.size();
    links.push_back(chosen);
    node = topology_.links[static_cast<std::size_t>(chosen)].to;
  }
  return links;
}

double latency(const Topology& topology, const std::vector<std::int32_t>& route) {
  double sum = 0;
  for (const std::int32_t link : route) sum += topology.links[static_cast<std::size_t>(link)].latency_seconds;
  return sum;
}

}  // namespace weft::cluster
