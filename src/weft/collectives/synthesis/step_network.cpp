#include "weft/collectives/synthesis/step_network.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

namespace weft::synthesis {
namespace {

constexpr double kLargestRatio = 64;  // of a link's rate to the common divisor
constexpr std::size_t kMostWays = 4;  // paths through switches per pair of devices
constexpr double kSlack = 1e-9;

// The greatest common divisor of the rates; the least rate if there is no reasonable one.
double common_rate(const std::vector<double>& rates) {
  const double least = *std::ranges::min_element(rates);
  const double most = *std::ranges::max_element(rates);
  for (int parts = 1; least / parts * kLargestRatio >= most && parts <= kLargestRatio; ++parts) {
    const double unit = least / parts;
    const bool divides = std::ranges::all_of(rates, [unit](double rate) {
      const double times = rate / unit;
      return std::abs(times - std::round(times)) < kSlack * 1e3 * times;
    });
    if (divides) return unit;
  }
  return least;
}

// A path from one device to another through switches only.
struct StepPath {
  StepEdge edge;
  std::vector<std::int32_t> links;

  friend auto operator<=>(const StepPath&, const StepPath&) = default;
};

// The shortest paths from `device` to every other; a few if several are equally short.
std::vector<StepPath> ways_from(const cluster::Topology& topology,
                                const std::vector<std::vector<std::int32_t>>& leaving, std::int32_t device) {
  std::vector<std::int32_t> hops(topology.nodes.size(), -1);
  std::vector<std::size_t> ways_to(topology.nodes.size(), 0);
  std::vector<StepPath> ways, front{{{device, device}, {}}};
  hops[static_cast<std::size_t>(device)] = 0;
  for (std::int32_t hop = 1; !front.empty(); ++hop) {
    std::vector<StepPath> next;
    for (const StepPath& way : front)
      for (const std::int32_t link : leaving[static_cast<std::size_t>(way.edge.to)]) {
        const std::int32_t node = topology.links[static_cast<std::size_t>(link)].to;
        const auto at = static_cast<std::size_t>(node);
        if ((hops[at] >= 0 && hops[at] < hop) || ways_to[at] == kMostWays) continue;
        hops[at] = hop;
        ++ways_to[at];
        StepPath longer{{device, node}, way.links};
        longer.links.push_back(link);
        (node < topology.devices ? ways : next).push_back(std::move(longer));
      }
    front = std::move(next);
  }
  return ways;
}

}  // namespace

std::int64_t chunks_in(const StepLimit& limit, std::int64_t rounds) {
  return static_cast<std::int64_t>(std::floor(limit.capacity * static_cast<double>(rounds) * (1 + kSlack)));
}

std::int64_t rounds_for(const StepLimit& limit, std::int64_t chunks) {
  return static_cast<std::int64_t>(std::ceil(static_cast<double>(chunks) / limit.capacity * (1 - kSlack)));
}

Result<StepNetwork> step_network(const cluster::Topology& topology) {
  WEFT_TRY_STATUS(cluster::check(topology));
  if (topology.devices > kMostStepDevices)
    return user_error(fmt::format("too many devices for step-optimal synthesis: {}", topology.devices),
                      fmt::format("at most {}; --optimal bandwidth takes more", kMostStepDevices));
  std::vector<std::vector<std::int32_t>> leaving(topology.nodes.size());
  for (std::size_t i = 0; i < topology.links.size(); ++i)
    leaving[static_cast<std::size_t>(topology.links[i].from)].push_back(static_cast<std::int32_t>(i));

  StepNetwork network;
  network.devices = topology.devices;
  std::vector<StepPath> ways;
  for (std::int32_t device = 0; device < topology.devices; ++device) {
    std::ranges::move(ways_from(topology, leaving, device), std::back_inserter(ways));
    if (ways.size() > kMostStepEdges)
      return user_error(
          fmt::format("too many paths between devices for step-optimal synthesis: over {}", kMostStepEdges));
  }
  std::ranges::sort(ways);

  // Parallel links between two devices are one edge with the sum of their capacities.
  std::vector<std::vector<std::int32_t>> users(topology.links.size());
  std::vector<double> rate(topology.links.size());
  for (std::size_t i = 0; i < rate.size(); ++i) rate[i] = topology.links[i].bytes_per_second;
  for (const StepPath& way : ways) {
    const bool parallel = way.links.size() == 1 && !network.edges.empty() && network.edges.back() == way.edge;
    if (parallel) {
      const auto edge = static_cast<std::int32_t>(network.edges.size()) - 1;
      const auto first = std::ranges::find_if(
          users, [&](const auto& edges) { return std::ranges::find(edges, edge) != edges.end(); });
      rate[static_cast<std::size_t>(first - users.begin())] += rate[static_cast<std::size_t>(way.links[0])];
      continue;
    }
    for (const std::int32_t link : way.links)
      users[static_cast<std::size_t>(link)].push_back(static_cast<std::int32_t>(network.edges.size()));
    network.edges.push_back(way.edge);
    network.latency.push_back(0);
    for (const std::int32_t link : way.links)
      network.latency.back() += topology.links[static_cast<std::size_t>(link)].latency_seconds;
  }

  const auto limit = [&](std::vector<std::int32_t> edges, double bytes_per_second, bool copied = false,
                         bool added = false) {
    if (edges.empty()) return;
    std::ranges::sort(edges);
    edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
    network.limits.push_back({std::move(edges), bytes_per_second, copied, added});
  };
  const auto node_at = [&](std::int32_t number) -> const cluster::Node& {
    return topology.nodes[static_cast<std::size_t>(number)];
  };
  const auto also = [](std::vector<std::int32_t> edges, const std::vector<std::int32_t>& more) {
    edges.insert(edges.end(), more.begin(), more.end());
    return edges;
  };
  for (std::size_t i = 0; i < users.size(); ++i) {
    const std::int32_t other = topology.links[i].shares_with;
    if (other < 0)
      limit(users[i], rate[i], node_at(topology.links[i].to).copies, node_at(topology.links[i].from).reduces);
    else if (static_cast<std::size_t>(other) > i)
      limit(also(users[i], users[static_cast<std::size_t>(other)]), rate[i]);
  }
  for (std::size_t node = 0; node < topology.nodes.size(); ++node) {
    if (topology.nodes[node].bytes_per_second <= 0) continue;
    std::vector<std::int32_t> through;
    for (const std::int32_t link : leaving[node])
      through = also(through, users[static_cast<std::size_t>(link)]);
    limit(std::move(through), topology.nodes[node].bytes_per_second);
  }

  if (!network.limits.empty()) {
    std::vector<double> rates;
    for (const StepLimit& each : network.limits) rates.push_back(each.capacity);
    network.round_rate = common_rate(rates);
    for (StepLimit& each : network.limits) {
      each.capacity /= network.round_rate;
      if (std::abs(each.capacity - std::round(each.capacity)) < kSlack * 1e3 * each.capacity)
        each.capacity = std::round(each.capacity);
    }
  }
  const auto distances = step_distances(network);
  for (std::int32_t from = 0; from < network.devices; ++from)
    for (std::int32_t to = 0; to < network.devices; ++to)
      if (distances[static_cast<std::size_t>(from)][static_cast<std::size_t>(to)] < 0)
        return user_error(
            fmt::format("the topology is not connected: there is no path from device {} to device {}", from,
                        to),
            "every device must be able to reach every other");
  return network;
}

StepNetwork reversed(const StepNetwork& network) {
  StepNetwork back = network;
  std::vector<std::int32_t> order(network.edges.size()), place(network.edges.size());
  std::iota(order.begin(), order.end(), 0);
  for (StepEdge& edge : back.edges) std::swap(edge.from, edge.to);
  std::ranges::stable_sort(order, {},
                           [&](std::int32_t e) { return back.edges[static_cast<std::size_t>(e)]; });
  for (std::size_t i = 0; i < order.size(); ++i)
    place[static_cast<std::size_t>(order[i])] = static_cast<std::int32_t>(i);
  std::ranges::sort(back.edges);
  for (std::size_t i = 0; i < network.latency.size(); ++i)
    back.latency[static_cast<std::size_t>(place[i])] = network.latency[i];
  for (StepLimit& limit : back.limits) {
    for (std::int32_t& edge : limit.edges) edge = place[static_cast<std::size_t>(edge)];
    std::ranges::sort(limit.edges);
    std::swap(limit.copied, limit.added);
  }
  return back;
}

std::vector<std::vector<std::int32_t>> step_distances(const StepNetwork& network) {
  const auto size = static_cast<std::size_t>(network.devices);
  std::vector<std::vector<std::int32_t>> leaving(size);
  for (const StepEdge& edge : network.edges) leaving[static_cast<std::size_t>(edge.from)].push_back(edge.to);
  std::vector<std::vector<std::int32_t>> distances(size, std::vector<std::int32_t>(size, -1));
  for (std::size_t from = 0; from < size; ++from) {
    std::vector<std::int32_t> front{static_cast<std::int32_t>(from)};
    distances[from][from] = 0;
    for (std::size_t i = 0; i < front.size(); ++i)
      for (const std::int32_t to : leaving[static_cast<std::size_t>(front[i])]) {
        std::int32_t& distance = distances[from][static_cast<std::size_t>(to)];
        if (distance >= 0) continue;
        distance = distances[from][static_cast<std::size_t>(front[i])] + 1;
        front.push_back(to);
      }
  }
  return distances;
}

}  // namespace weft::synthesis
