#include "weft/collectives/synthesis/cheapest_tree.h"

#include <algorithm>
#include <limits>

#include "weft/collectives/synthesis/index.h"

namespace weft::synthesis {
namespace {

using Costs = std::vector<std::vector<double>>;
using Parents = std::vector<std::int32_t>;

constexpr double kFlatSlack = 1e-7;  // relative extra cost of an edge allowed for a flatter tree

std::int32_t levels(const Parents& parents, std::int32_t node) {
  std::int32_t count = 0;
  for (; parents[at(node)] >= 0; node = parents[at(node)]) ++count;
  return count;
}

Parents cheapest_parents(const Costs& cost, std::int32_t root) {
  const auto nodes = static_cast<std::int32_t>(cost.size());
  Parents parents(cost.size(), -1);
  for (std::int32_t to = 0; to < nodes; ++to)
    for (std::int32_t from = 0; to != root && from < nodes; ++from)
      if (from != to && (parents[at(to)] < 0 || cost[at(from)][at(to)] < cost[at(parents[at(to)])][at(to)]))
        parents[at(to)] = from;
  return parents;
}

// Numbers the cycles and assigns every node its cycle, or -1; returns their number.
std::int32_t find_cycles(const Parents& parents, Parents& circle) {
  Parents seen(parents.size(), -1);
  std::int32_t circles = 0;
  circle.assign(parents.size(), -1);
  for (std::int32_t start = 0; start < static_cast<std::int32_t>(parents.size()); ++start) {
    std::int32_t node = start;
    while (node >= 0 && seen[at(node)] < 0) {
      seen[at(node)] = start;
      node = parents[at(node)];
    }
    if (node < 0 || seen[at(node)] != start) continue;
    for (std::int32_t on = node; circle[at(on)] < 0; on = parents[at(on)]) circle[at(on)] = circles;
    ++circles;
  }
  return circles;
}

Parents solve(const Costs& cost, std::int32_t root) {
  Parents parents = cheapest_parents(cost, root), circle;
  std::int32_t small = find_cycles(parents, circle);
  if (small == 0) return parents;
  // Contract cycles to nodes. An edge into one costs the difference to the cycle's own edge there.
  Parents number = circle;
  for (std::int32_t& it : number)
    if (it < 0) it = small++;
  const auto count = at(small);
  Costs less(count, std::vector<double>(count, std::numeric_limits<double>::infinity()));
  std::vector<std::vector<std::pair<std::int32_t, std::int32_t>>> edge(
      count, std::vector<std::pair<std::int32_t, std::int32_t>>(count, {-1, -1}));
  const auto nodes = static_cast<std::int32_t>(cost.size());
  for (std::int32_t from = 0; from < nodes; ++from)
    for (std::int32_t to = 0; to < nodes; ++to) {
      const std::int32_t a = number[at(from)], b = number[at(to)];
      if (a == b) continue;
      const double saved = circle[at(to)] >= 0 ? cost[at(parents[at(to)])][at(to)] : 0;
      const double more = cost[at(from)][at(to)] - saved;
      if (edge[at(a)][at(b)].first >= 0 && more >= less[at(a)][at(b)]) continue;
      less[at(a)][at(b)] = more;
      edge[at(a)][at(b)] = {from, to};
    }
  const Parents outer = solve(less, number[at(root)]);
  for (std::int32_t b = 0; b < small; ++b)
    if (outer[at(b)] >= 0) {
      const auto [from, to] = edge[at(outer[at(b)])][at(b)];
      parents[at(to)] = from;  // breaks the cycle, if `to` is in one
    }
  return parents;
}

}  // namespace

std::vector<std::int32_t> cheapest_tree(const Costs& cost, std::int32_t root) {
  Parents parents = solve(cost, root);
  flatten(cost, root, 0, parents);
  return parents;
}

void flatten(const Costs& cost, std::int32_t root, double level, Parents& parents) {
  const auto nodes = static_cast<std::int32_t>(cost.size());
  // A parent nearer the root cannot be a descendant of the node.
  for (bool flatter = true; flatter;) {
    flatter = false;
    for (std::int32_t to = 0; to < nodes; ++to)
      for (std::int32_t from = 0; to != root && from < nodes; ++from) {
        const std::int32_t saved = from == to ? 0 : levels(parents, to) - levels(parents, from) - 1;
        const double now = cost[at(parents[at(to)])][at(to)];
        if (saved < 1 || cost[at(from)][at(to)] > now * (1 + kFlatSlack) + level * saved) continue;
        parents[at(to)] = from;
        flatter = true;
      }
  }
}

std::int32_t depth_of(const Parents& parents) {
  std::int32_t most = 0;
  for (std::int32_t node = 0; node < static_cast<std::int32_t>(parents.size()); ++node)
    most = std::max(most, levels(parents, node));
  return most;
}

}  // namespace weft::synthesis
