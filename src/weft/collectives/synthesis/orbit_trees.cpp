// grow_orbit(): trees of root 0 that use every class of links as often as the optimum allows.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "weft/collectives/synthesis/symmetry.h"

namespace weft::synthesis {
namespace {

// A path from device 0 to device `to` through switches only. Shifted, it connects any two devices.
struct Way {
  std::int32_t to = 0;
  std::vector<std::int32_t> kinds;  // of its wires
  double price = 0;                 // relative use of the available capacity
};

class OrbitGrower {
 public:
  OrbitGrower(const Wires& wires, const Symmetry& symmetry, Ratio rate)
      : wires_(wires), symmetry_(symmetry), one_(symmetry.kind_sizes.size(), 0) {
    // How often one tree may use a kind: the capacity of its wires over the rate of a root.
    for (std::size_t w = 0; w < wires.wires.size(); ++w) {
      const auto kind = static_cast<std::size_t>(symmetry.kinds[w]);
      one_[kind] += static_cast<double>(wires.wires[w].capacity);
    }
    for (double& quota : one_) quota /= wires.gpus * rate.value();
    find_ways();
  }

  std::optional<OrbitTrees> grow(Amount each) {
    quota_ = one_;
    for (double& quota : quota_) quota *= static_cast<double>(each);
    used_.assign(quota_.size(), 0);
    reserved_.assign(quota_.size(), 0);
    OrbitTrees made;
    made.each = each;
    std::vector<std::vector<TreeEdge>> first;
    for (Amount t = 0; t < each; ++t) {
      auto edges = tree();
      if (!edges) return std::nullopt;
      first.push_back(std::move(*edges));
      if (t == 0)
        for (std::size_t k = 0; k < used_.size(); ++k)
          reserved_[k] = spanning_use_[k] * static_cast<double>(each - 1);
      else
        for (std::size_t k = 0; k < used_.size(); ++k) reserved_[k] -= spanning_use_[k];
    }
    double worst = 1;
    for (std::size_t k = 0; k < used_.size(); ++k)
      if (used_[k] > 0) worst = std::max(worst, used_[k] / quota_[k]);
    made.efficiency = 1 / worst;
    first_ = std::move(first);
    return made;
  }

  // Shifts the trees of root 0 to all roots.
  void spread(OrbitTrees& made) const {
    for (std::int32_t root = 0; root < wires_.gpus; ++root)
      for (const std::vector<TreeEdge>& edges : first_) {
        Tree tree{root, 1, edges};
        for (TreeEdge& edge : tree.edges) {
          edge.from = shift(symmetry_, edge.from, root);
          edge.to = shift(symmetry_, edge.to, root);
        }
        made.trees.push_back(std::move(tree));
      }
  }

 private:
  void find_ways() {
    std::vector<std::vector<std::int32_t>> out(static_cast<std::size_t>(wires_.nodes));
    for (std::size_t w = 0; w < wires_.wires.size(); ++w)
      out[static_cast<std::size_t>(wires_.wires[w].from)].push_back(static_cast<std::int32_t>(w));
    std::vector<std::int32_t> firsts;  // one per neighbour
    for (const std::int32_t w : out[0]) {
      const auto same = [&](std::int32_t other) { return wire(other).to == wire(w).to; };
      if (std::ranges::none_of(firsts, same)) firsts.push_back(w);
    }
    for (const std::int32_t start : firsts) {
      std::vector<std::int32_t> by(static_cast<std::size_t>(wires_.nodes), -1), list{wire(start).to};
      by[static_cast<std::size_t>(wire(start).to)] = start;
      for (std::size_t i = 0; i < list.size(); ++i) {
        if (list[i] < wires_.gpus) {
          add_way(list[i], by);
          continue;
        }
        for (const std::int32_t w : out[static_cast<std::size_t>(list[i])]) {
          const std::int32_t to = wire(w).to;
          if (to == 0 || by[static_cast<std::size_t>(to)] >= 0) continue;
          by[static_cast<std::size_t>(to)] = w;
          list.push_back(to);
        }
      }
    }
    // Expensive paths last: levels of equal price, and the components that cheaper paths connect.
    std::ranges::stable_sort(ways_, {}, &Way::price);
    std::vector<std::int32_t> group(static_cast<std::size_t>(wires_.gpus));
    std::iota(group.begin(), group.end(), 0);
    const auto find = [&](std::int32_t gpu) {
      while (group[static_cast<std::size_t>(gpu)] != gpu) {
        std::int32_t& up = group[static_cast<std::size_t>(gpu)];
        gpu = up = group[static_cast<std::size_t>(up)];
      }
      return gpu;
    };
    for (std::size_t first = 0; first < ways_.size();) {
      std::vector<std::int32_t> before(group.size());
      for (std::int32_t g = 0; g < wires_.gpus; ++g) before[static_cast<std::size_t>(g)] = find(g);
      std::size_t end = first;
      while (end < ways_.size() && ways_[end].price <= ways_[first].price * (1 + 1e-9)) ++end;
      for (std::size_t w = first; w < end; ++w)
        for (std::int32_t g = 0; g < wires_.gpus; ++g) {
          const std::int32_t a = find(g), b = find(shift(symmetry_, g, ways_[w].to));
          if (a != b) group[static_cast<std::size_t>(std::max(a, b))] = std::min(a, b);
        }
      levels_.push_back({first, end, std::move(before)});
      first = end;
    }
  }

  const Wire& wire(std::int32_t number) const { return wires_.wires[static_cast<std::size_t>(number)]; }

  void add_way(std::int32_t to, const std::vector<std::int32_t>& by) {
    Way way;
    way.to = to;
    for (std::int32_t node = to; node != 0;) {
      const std::int32_t w = by[static_cast<std::size_t>(node)];
      way.kinds.push_back(symmetry_.kinds[static_cast<std::size_t>(w)]);
      way.price += 1 / one_[static_cast<std::size_t>(way.kinds.back())];
      node = wire(w).from;
    }
    ways_.push_back(std::move(way));
  }

  struct Level {
    std::size_t first = 0, end = 0;    // range of ways_
    std::vector<std::int32_t> groups;  // per device: its component under cheaper paths
  };

  // The relative capacity left for a path. Negative: take it only if there is no other.
  double left(const Way& way, bool spare) const {
    double least = std::numeric_limits<double>::infinity();
    for (const std::int32_t kind : way.kinds) {
      const auto k = static_cast<std::size_t>(kind);
      const double room = quota_[k] - used_[k] - (spare ? reserved_[k] : 0);
      least = std::min(least, room < 1 - 1e-9 ? -1 + room / quota_[k] : (quota_[k] - used_[k]) / quota_[k]);
    }
    return least;
  }

  void take(std::int32_t from, const Way& way, std::vector<TreeEdge>& edges) {
    const std::int32_t to = shift(symmetry_, from, way.to);
    covered_[static_cast<std::size_t>(to)] = true;
    order_.push_back(to);
    edges.push_back({from, to, -1});
    for (const std::int32_t kind : way.kinds) used_[static_cast<std::size_t>(kind)] += 1;
  }

  // Adds edges along the paths [first, end) to devices that `open` admits until there is none.
  template <class Open, class Entered>
  void extend(std::size_t first, std::size_t end, bool spare, Open open, Entered entered,
              std::vector<TreeEdge>& edges) {
    std::vector<std::size_t> at(ways_.size(), 0);  // per path: earlier devices reach nothing new along it
    while (true) {
      std::size_t best = ways_.size();
      double most = -std::numeric_limits<double>::infinity();
      for (std::size_t w = first; w < end; ++w) {
        const double room = left(ways_[w], spare);
        if (room < most) continue;
        std::size_t& i = at[w];
        while (i < order_.size() && !open(shift(symmetry_, order_[i], ways_[w].to))) ++i;
        // Among equal paths take the one that starts nearest the root, for flat trees.
        if (i == order_.size() || (room == most && i >= at[best])) continue;
        best = w;
        most = room;
      }
      if (best == ways_.size()) return;
      const std::int32_t from = order_[at[best]];
      take(from, ways_[best], edges);
      entered(order_.back());
    }
  }

  std::optional<std::vector<TreeEdge>> tree() {
    covered_.assign(static_cast<std::size_t>(wires_.gpus), false);
    covered_[0] = true;
    order_.assign(1, 0);
    std::vector<TreeEdge> edges;
    const std::vector<double> before = used_;
    // Expensive paths first, and no more of them than needed to enter every component of cheaper
    // ones.
    for (std::size_t l = levels_.size(); l-- > 1;) {
      const Level& level = levels_[l];
      std::vector<bool> entered(covered_.size(), false);
      for (const std::int32_t gpu : order_) entered[group(level, gpu)] = true;
      extend(
          level.first, level.end, false, [&](std::int32_t gpu) { return !entered[group(level, gpu)]; },
          [&](std::int32_t gpu) { entered[group(level, gpu)] = true; }, edges);
    }
    spanning_use_ = used_;
    for (std::size_t k = 0; k < used_.size(); ++k) spanning_use_[k] -= before[k];
    extend(
        0, ways_.size(), true, [&](std::int32_t gpu) { return !covered_[static_cast<std::size_t>(gpu)]; },
        [](std::int32_t) {}, edges);
    if (edges.size() + 1 < covered_.size()) return std::nullopt;
    return edges;
  }

  static std::size_t group(const Level& level, std::int32_t gpu) {
    return static_cast<std::size_t>(level.groups[static_cast<std::size_t>(gpu)]);
  }

  const Wires& wires_;
  const Symmetry& symmetry_;
  std::vector<double> one_, quota_, used_, reserved_, spanning_use_;  // per kind
  std::vector<Way> ways_;                                             // sorted by price
  std::vector<Level> levels_;
  std::vector<bool> covered_;
  std::vector<std::int32_t> order_;           // devices in the order they were reached
  std::vector<std::vector<TreeEdge>> first_;  // trees of root 0
};

}  // namespace

std::optional<OrbitTrees> grow_orbit(const Wires& wires, const Symmetry& symmetry, Ratio rate, Amount most) {
  OrbitGrower grower(wires, symmetry, rate);
  std::optional<OrbitTrees> best;
  Amount best_each = 0;
  for (Amount each = 1; each <= std::min(most, rate.over); ++each) {
    std::optional<OrbitTrees> found = grower.grow(each);
    if (!found || (best && found->efficiency <= best->efficiency + 1e-9)) continue;
    best = std::move(found);
    best_each = each;
    if (best->efficiency > 1 - 1e-9) break;
  }
  if (!best || best->efficiency < 0.99) return std::nullopt;
  best = grower.grow(best_each);
  grower.spread(*best);
  return best;
}

}  // namespace weft::synthesis
