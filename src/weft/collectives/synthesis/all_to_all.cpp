#include "weft/collectives/synthesis/all_to_all.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <queue>
#include <span>
#include <utility>

#include "weft/collectives/synthesis/concurrent_flow.h"
#include "weft/collectives/synthesis/fractional_packing.h"
#include "weft/collectives/synthesis/index.h"
#include "weft/collectives/synthesis/time_schedule.h"

namespace weft::synthesis {
namespace {

constexpr double kFlowGap = 0.01, kExactGap = 2e-4;
constexpr std::int32_t kMostExact = 20;  // devices; a linear program for more takes too long
constexpr std::int32_t kDeals = 4;       // passes that choose every chunk's path again

// Assigns a path to every chunk.
class PathAssigner {
 public:
  PathAssigner(const FlowNetwork& network, const ConcurrentFlow& flow)
      : network_(network), flow_(flow), load_(network.capacities.size(), 0) {
    for (std::size_t p = 0; p < flow.paths.size(); ++p)
      of_pair_[{flow.paths[p].from, flow.paths[p].to}].push_back(p);
  }

  // Returns a path per chunk, with step_problem()'s numbering.
  std::vector<std::size_t> deal(std::int32_t devices, std::int32_t cut) {
    const auto chunk_of = [&](std::int32_t from, std::int32_t to, std::int32_t copy) {
      return at((from * devices + to) * cut + copy);
    };
    std::vector<std::size_t> chosen(at(devices * devices * cut), flow_.paths.size());
    // Start from the flow's shares, then reassign each chunk to its least loaded path.
    for (std::int32_t pass = 0; pass <= kDeals; ++pass)
      for (const auto& [pair, paths] : of_pair_)
        for (std::int32_t copy = 0; copy < cut; ++copy) {
          std::size_t& choice = chosen[chunk_of(pair.first, pair.second, copy)];
          if (pass > 0) add(choice, -1);
          choice = pass == 0 ? by_share(paths, copy, cut) : lightest(paths);
          add(choice, 1);
        }
    return chosen;
  }

 private:
  std::size_t by_share(const std::vector<std::size_t>& paths, std::int32_t copy, std::int32_t cut) const {
    double point = (copy + 0.5) / cut;
    for (const std::size_t path : paths) {
      point -= flow_.paths[path].share;
      if (point <= 0) return path;
    }
    return paths.back();
  }

  void add(std::size_t path, double amount) {
    for (const std::int32_t arc : flow_.paths[path].arcs)
      for (const std::int32_t use : network_.arcs[at(arc)].uses)
        load_[at(use)] += amount / network_.capacities[at(use)];
    most_ = *std::ranges::max_element(load_);
  }

  // Weights loads exponentially, so that those near the maximum dominate.
  std::size_t lightest(const std::vector<std::size_t>& paths) const {
    std::size_t best = paths.front();
    double least = kNever;
    for (const std::size_t path : paths) {
      double weight = 0;
      for (const std::int32_t arc : flow_.paths[path].arcs)
        for (const std::int32_t use : network_.arcs[at(arc)].uses) {
          const double share = load_[at(use)] / most_;
          weight += std::exp(24 * (share - 1)) / network_.capacities[at(use)];
        }
      if (weight < least) least = weight, best = path;
    }
    return best;
  }

  const FlowNetwork& network_;
  const ConcurrentFlow& flow_;
  std::vector<double> load_;
  double most_ = 1;
  std::map<std::pair<std::int32_t, std::int32_t>, std::vector<std::size_t>> of_pair_;
};

// Pricing oracle: shortest paths between all pairs; a group is a pair.
class PathOracle {
 public:
  explicit PathOracle(const FlowNetwork& network) : network_(network), leaving_(at(network.nodes)) {
    for (std::size_t a = 0; a < network.arcs.size(); ++a)
      leaving_[at(network.arcs[a].from)].push_back(static_cast<std::int32_t>(a));
  }

  std::int32_t group(std::int32_t from, std::int32_t to) const {
    return from * (network_.ends - 1) + to - (to > from ? 1 : 0);
  }

  std::vector<PackedColumn> cheapest(std::span<const double> prices) {
    double sum = 0;
    for (const double price : prices) sum += price;
    const double hop = kHopPrice * sum / static_cast<double>(prices.size());
    std::vector<PackedColumn> columns;
    for (std::int32_t from = 0; from < network_.ends; ++from) {
      const std::vector<std::int32_t> by = ways_from(from, prices, hop);
      for (std::int32_t to = 0; to < network_.ends; ++to) {
        if (to == from) continue;
        FlowPath path{from, to, {}, 0};
        for (std::int32_t node = to; node != from; node = network_.arcs[at(by[at(node)])].from)
          path.arcs.push_back(by[at(node)]);
        std::ranges::reverse(path.arcs);
        PackedColumn column{group(from, to), {}, static_cast<std::int32_t>(paths_.size()), 0};
        for (const std::int32_t arc : path.arcs)
          column.uses.insert(column.uses.end(), network_.arcs[at(arc)].uses.begin(),
                             network_.arcs[at(arc)].uses.end());
        paths_.push_back(std::move(path));
        columns.push_back(std::move(column));
      }
    }
    return columns;
  }

  const FlowPath& path(std::int32_t label) const { return paths_[at(label)]; }

 private:
  // The arc that enters each node on a shortest path.
  std::vector<std::int32_t> ways_from(std::int32_t from, std::span<const double> prices, double hop) const {
    std::vector<double> distance(at(network_.nodes), kNever);
    std::vector<std::int32_t> by(at(network_.nodes), -1);
    using Entry = std::pair<double, std::int32_t>;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
    distance[at(from)] = 0;
    queue.emplace(0, from);
    while (!queue.empty()) {
      const auto [reached, node] = queue.top();
      queue.pop();
      if (reached > distance[at(node)]) continue;
      for (const std::int32_t arc : leaving_[at(node)]) {
        double then = reached + hop;
        for (const std::int32_t use : network_.arcs[at(arc)].uses) then += prices[at(use)];
        const std::int32_t to = network_.arcs[at(arc)].to;
        if (then >= distance[at(to)]) continue;
        distance[at(to)] = then;
        by[at(to)] = arc;
        queue.emplace(then, to);
      }
    }
    return by;
  }

  static constexpr double kHopPrice = 1e-8;  // extra cost per arc, relative to the average price
  const FlowNetwork& network_;
  std::vector<std::vector<std::int32_t>> leaving_;
  std::vector<FlowPath> paths_;
};

ConcurrentFlow exact_flow(const FlowNetwork& network, const Deadline& deadline) {
  PathOracle oracle(network);
  const FractionalPacking packing = pack_fractionally(
      network.capacities, network.ends * (network.ends - 1),
      [&](std::span<const double> prices) { return oracle.cheapest(prices); }, kExactGap, deadline);
  ConcurrentFlow flow;
  if (packing.columns.empty()) return flow;
  flow.rate = 1 / packing.congestion;
  flow.bound = 1 / packing.bound;
  for (const PackedColumn& column : packing.columns) {
    flow.paths.push_back(oracle.path(column.label));
    flow.paths.back().share = column.share;
  }
  return flow;
}

// Assigns whole parts of blocks to paths if a flow has too many paths for a program.
void assign_parts(const FlowNetwork& network, ConcurrentFlow& flow) {
  for (FlowPath& path : flow.paths) path.share = 0;
  for (const std::size_t path : PathAssigner(network, flow).deal(network.ends, kPathParts))
    if (path < flow.paths.size()) flow.paths[path].share += 1.0 / kPathParts;
  std::erase_if(flow.paths, [](const FlowPath& path) { return path.share == 0; });
}

// A hop of the path is a segment from device to device.
RoutedPath routed(const FlowPath& path, const Wires& wires, RouteTable& book) {
  RoutedPath made{path.from, path.to, {}, path.share};
  std::int32_t from = path.from;
  std::vector<std::int32_t> links;
  for (const std::int32_t arc : path.arcs) {
    const Wire& wire = wires.wires[at(arc)];
    if (wire.link >= 0) links.push_back(wire.link);
    if (wire.to >= wires.gpus) continue;
    made.edges.push_back({from, wire.to, -1, book.number(from, wire.to, links)});
    from = wire.to;
    links.clear();
  }
  return made;
}

Result<AllToAll> find_all_to_all(const cluster::Topology& topology, FlowPaths paths,
                                 const Deadline& deadline) {
  WEFT_TRY(wires, wires_of(topology));
  const FlowNetwork network = flow_network(wires);
  const bool few = wires.gpus <= kMostExact;
  ConcurrentFlow flow =
      few ? exact_flow(network, deadline) : find_concurrent_flow(network, kFlowGap, deadline, paths);
  if (!(flow.rate > 0))
    return user_error("time ran out before an all_to_all was bounded", "raise --time-limit");
  AllToAll made{flow.bound * wires.gpus, flow.rate * wires.gpus, {}, {}};
  if (paths == FlowPaths::no) return made;
  if (!few) assign_parts(network, flow);
  RouteTable book(topology);
  for (const FlowPath& path : flow.paths) made.paths.push_back(routed(path, wires, book));
  made.routes = book.take();
  return made;
}

}  // namespace

Result<AllToAll> bound_all_to_all(const cluster::Topology& topology, const Deadline& deadline) {
  return find_all_to_all(topology, FlowPaths::no, deadline);
}

Result<AllToAll> route_all_to_all(const cluster::Topology& topology, const Deadline& deadline) {
  return find_all_to_all(topology, FlowPaths::yes, deadline);
}

}  // namespace weft::synthesis
