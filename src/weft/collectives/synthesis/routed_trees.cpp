#include "weft/collectives/synthesis/routed_trees.h"

#include <algorithm>
#include <limits>
#include <map>
#include <queue>
#include <span>
#include <utility>

#include "weft/collectives/synthesis/cheapest_tree.h"
#include "weft/collectives/synthesis/fractional_packing.h"
#include "weft/collectives/synthesis/index.h"

namespace weft::synthesis {
namespace {

constexpr double kGap = 2e-4;  // relative to the bound
// Cost of a tree level: about 10 us per message, if all roots together send a gigabyte.
constexpr double kLevel = 10e-6 / 1e9;
constexpr double kHop = 1e-8;  // extra cost per wire, relative to the average price
constexpr double kNoWay = std::numeric_limits<double>::infinity();

// Two devices have 32 channels of some 10 GB/s each for short messages; more capacity between them
// is of no use.
constexpr double kPairRate = 32 * 10.5e9;

// Pricing oracle: cheapest trees under the prices of wires, and the paths of their edges.
class TreeOracle {
 public:
  // Appends the `capacities` of the wires, then those of pairs limited by channels rather than
  // wires.
  TreeOracle(const Wires& wires, const std::vector<std::int32_t>& roots, bool limits_pairs,
             std::vector<double>& capacities)
      : wires_(wires), roots_(roots), leaving_(at(wires.nodes)) {
    for (std::size_t w = 0; w < wires.wires.size(); ++w) {
      const Wire& wire = wires.wires[w];
      leaving_[at(wire.from)].push_back(static_cast<std::int32_t>(w));
      capacities.push_back(static_cast<double>(wire.capacity) * wires.unit);
    }
    for (std::int32_t from = 0; limits_pairs && from < wires.gpus; ++from)
      for (std::int32_t to = 0; to < wires.gpus; ++to)
        if (from != to && most_between(from, to, capacities) > kPairRate) {
          pairs_[{from, to}] = static_cast<std::int32_t>(capacities.size());
          capacities.push_back(kPairRate);
        }
  }

  bool limits_pairs() const { return !pairs_.empty(); }

  std::vector<PackedColumn> cheapest(std::span<const double> prices) {
    find_ways(prices);
    std::vector<PackedColumn> columns;
    for (std::size_t r = 0; r < roots_.size(); ++r) {
      std::vector<std::int32_t> parents = cheapest_tree(cost_, roots_[r]);
      columns.push_back(column_of(parents, static_cast<std::int32_t>(r)));
      for (const double levels : {0.25, 1.0, 4.0}) {
        std::vector<std::int32_t> flat = parents;
        flatten(cost_, roots_[r], levels * kLevel, flat);
        if (flat == parents) continue;
        columns.push_back(column_of(flat, static_cast<std::int32_t>(r)));
        parents = std::move(flat);
      }
    }
    return columns;
  }

  const Tree& tree(std::int32_t label) const { return trees_[at(label)]; }
  // The wires of an edge.
  const std::vector<std::int32_t>& way(std::int32_t number) const { return ways_[at(number)]; }

 private:
  // Upper bound on the capacity of the wires from one device to another through switches.
  double most_between(std::int32_t from, std::int32_t to, const std::vector<double>& capacities) const {
    double direct = 0, out = 0, in = 0;
    for (std::size_t w = 0; w < wires_.wires.size(); ++w) {
      const Wire& wire = wires_.wires[w];
      if (wire.from == from && wire.to == to) direct += capacities[w];
      if (wire.from == from && wire.to >= wires_.gpus) out += capacities[w];
      if (wire.from >= wires_.gpus && wire.to == to) in += capacities[w];
    }
    return direct + std::min(out, in);
  }

  PackedColumn column_of(const std::vector<std::int32_t>& parents, std::int32_t group) {
    PackedColumn column;
    column.group = group;
    column.label = static_cast<std::int32_t>(trees_.size());
    column.cost = kLevel * depth_of(parents);
    trees_.push_back(tree_of(parents, roots_[at(group)]));
    for (const TreeEdge& edge : trees_.back().edges) {
      const std::vector<std::int32_t>& way = ways_[at(edge.route)];
      column.uses.insert(column.uses.end(), way.begin(), way.end());
      if (const auto pair = pairs_.find({edge.from, edge.to}); pair != pairs_.end())
        column.uses.push_back(pair->second);
    }
    return column;
  }

  // Finds the cheapest path between every two devices that passes no third.
  void find_ways(std::span<const double> prices) {
    double sum = 0;
    for (const double price : prices) sum += price;
    const double hop = kHop * sum / static_cast<double>(prices.size());
    cost_.assign(at(wires_.gpus), std::vector<double>(at(wires_.gpus), kNoWay));
    chosen_.assign(at(wires_.gpus), std::vector<std::int32_t>(at(wires_.gpus), -1));
    for (std::int32_t from = 0; from < wires_.gpus; ++from) {
      std::vector<double> distance(at(wires_.nodes), kNoWay);
      std::vector<std::int32_t> by(at(wires_.nodes), -1);
      using Entry = std::pair<double, std::int32_t>;
      std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
      distance[at(from)] = 0;
      queue.emplace(0, from);
      while (!queue.empty()) {
        const auto [reached, node] = queue.top();
        queue.pop();
        if (reached > distance[at(node)] || (node < wires_.gpus && node != from)) continue;
        for (const std::int32_t w : leaving_[at(node)]) {
          const Wire& wire = wires_.wires[at(w)];
          const double then = reached + prices[at(w)] + hop;
          if (then >= distance[at(wire.to)]) continue;
          distance[at(wire.to)] = then;
          by[at(wire.to)] = w;
          queue.emplace(then, wire.to);
        }
      }
      for (std::int32_t to = 0; to < wires_.gpus; ++to) {
        if (to == from || distance[at(to)] == kNoWay) continue;
        const auto pair = pairs_.find({from, to});
        cost_[at(from)][at(to)] = distance[at(to)] + (pair == pairs_.end() ? 0 : prices[at(pair->second)]);
        std::vector<std::int32_t> way;
        for (std::int32_t node = to; node != from; node = wires_.wires[at(by[at(node)])].from)
          way.push_back(by[at(node)]);
        std::ranges::reverse(way);
        const auto [known, is_new] =
            numbers_.try_emplace(std::move(way), static_cast<std::int32_t>(ways_.size()));
        if (is_new) ways_.push_back(known->first);
        chosen_[at(from)][at(to)] = known->second;
      }
    }
  }

  // Lists the edges in order from the root.
  Tree tree_of(const std::vector<std::int32_t>& parents, std::int32_t root) const {
    Tree tree;
    tree.root = root;
    std::vector<std::int32_t> order{root};
    for (std::size_t i = 0; i < order.size(); ++i)
      for (std::int32_t to = 0; to < wires_.gpus; ++to)
        if (parents[at(to)] == order[i]) {
          tree.edges.push_back({order[i], to, -1, chosen_[at(order[i])][at(to)]});
          order.push_back(to);
        }
    return tree;
  }

  const Wires& wires_;
  const std::vector<std::int32_t>& roots_;
  std::vector<std::vector<std::int32_t>> leaving_;
  std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> pairs_;  // indices of their capacities
  std::vector<std::vector<double>> cost_;
  std::vector<std::vector<std::int32_t>> chosen_;  // index of the path of each edge
  std::map<std::vector<std::int32_t>, std::int32_t> numbers_;
  std::vector<std::vector<std::int32_t>> ways_;  // as lists of wires
  std::vector<Tree> trees_;
};

}  // namespace

RoutedTrees pack_routed_trees(const Wires& wires, const std::vector<std::int32_t>& roots, double rate,
                              bool limits_pairs, const Deadline& deadline) {
  std::vector<double> capacities;
  TreeOracle oracle(wires, roots, limits_pairs, capacities);
  const FractionalPacking packing = pack_fractionally(
      capacities, static_cast<std::int32_t>(roots.size()),
      [&](std::span<const double> prices) { return oracle.cheapest(prices); }, kGap, deadline, 1 / rate);
  RoutedTrees made;
  if (packing.columns.empty()) return made;
  made.rate = 1 / packing.congestion;
  made.bound = oracle.limits_pairs() ? rate : 1 / packing.bound;
  std::map<std::int32_t, std::int32_t> numbers;
  for (const PackedColumn& column : packing.columns) {
    Tree tree = oracle.tree(column.label);
    tree.share = column.share;
    for (TreeEdge& edge : tree.edges) {
      const auto [known, is_new] =
          numbers.try_emplace(edge.route, static_cast<std::int32_t>(made.routes.size()));
      if (is_new) {
        made.routes.emplace_back();
        for (const std::int32_t w : oracle.way(edge.route))
          if (wires.wires[at(w)].link >= 0) made.routes.back().push_back(wires.wires[at(w)].link);
      }
      edge.route = known->second;
    }
    made.trees.push_back(std::move(tree));
  }
  return made;
}

}  // namespace weft::synthesis
