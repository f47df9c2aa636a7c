#include "weft/collectives/synthesis/forest.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "weft/collectives/synthesis/coarser_rate.h"
#include "weft/collectives/synthesis/in_network.h"
#include "weft/collectives/synthesis/interleave_shares.h"
#include "weft/collectives/synthesis/symmetry.h"
#include "weft/plan/cluster/routes.h"

namespace weft::synthesis {
namespace {

using collective::Kind;

// Limit on trees per root. With few devices it may be exceeded, as the exact optimum needs more.
constexpr Amount kMostTrees = 16;
constexpr Amount kMostWork = 1 << 13;  // trees times devices squared

// Limit on devices that are not all equivalent: memory grows with the cube of their number.
constexpr std::int32_t kMostUnlike = 256;

Amount most_trees(std::int32_t gpus) {
  return std::max(kMostTrees, kMostWork / (static_cast<Amount>(gpus) * gpus));
}

struct HalfForest {
  Optimum optimum;
  std::vector<Tree> trees;
  Amount each = 0;
  double rate = 0;     // bytes per second per root at the optimum
  double planned = 0;  // what its trees attain
};

// One direction of a forest: from all roots to all devices.
class HalfGrower {
 public:
  HalfGrower(const cluster::Topology& topology, Wires wires, bool up, const std::vector<std::int32_t>& roots,
             RouteTable& book, const Deadline& deadline)
      : topology_(topology),
        wires_(std::move(wires)),
        up_(up),
        roots_(roots),
        book_(book),
        deadline_(deadline) {}

  Result<HalfForest> grow(bool trees, TreeShares shares) {
    // If all devices are equivalent, one root suffices.
    const std::optional<Symmetry> symmetry = roots_.size() == static_cast<std::size_t>(wires_.gpus)
                                                 ? find_symmetry(wires_, deadline_)
                                                 : std::nullopt;
    half_.optimum = find_optimum(wires_, roots_, deadline_, symmetry.has_value());
    half_.rate = half_.optimum.rate.value() * wires_.unit;
    if (!half_.optimum.exact && trees)
      return user_error("time ran out before the optimum was known", "raise --time-limit");
    const bool routed = shares == TreeShares::fractions && wires_.gpus <= kMostRouted;
    // The cut bound is the optimum if every switch has equal incoming and outgoing capacity.
    const bool cuts_suffice = switches_are_even();
    if (!half_.optimum.exact || (!trees && (cuts_suffice || !routed))) return std::move(half_);
    if (symmetry && grow_symmetric(*symmetry) && (!routed || shortest_paths_suffice()))
      return std::move(half_);
    if (wires_.gpus > kMostUnlike) return std::move(half_);
    const bool few = half_.optimum.rate.over <= kMostTrees && is_plain();
    if (routed && !few) return grow_fractions();
    WEFT_TRY_STATUS(grow_whole());
    return std::move(half_);
  }

 private:
  bool grow_symmetric(const Symmetry& symmetry) {
    std::optional<OrbitTrees> found =
        grow_orbit(wires_, symmetry, half_.optimum.rate, most_trees(wires_.gpus));
    if (!found) return false;
    half_.trees = std::move(found->trees);
    half_.each = found->each;
    half_.planned = half_.rate * found->efficiency;
    set_equal_shares();
    return true;
  }

  Status grow_whole() {
    CoarserRate coarse = coarser_rate(wires_, roots_, half_.optimum.rate, most_trees(wires_.gpus), deadline_);
    LogicalLinks links = remove_switches(coarse.wires, roots_, coarse.rate, deadline_);
    Packing packing = pack_trees(links, roots_, coarse.rate.over, deadline_);
    double unit = coarse.wires.unit / static_cast<double>(links.scale);
    if (!packing.complete && !deadline_.over()) {
      // Switches that receive more than they can forward lower the rate: pack what the logical
      // links carry.
      Wires past;
      past.gpus = past.nodes = wires_.gpus;
      past.unit = unit;
      for (const LogicalLink& link : links.links)
        past.wires.push_back({link.from, link.to, link.capacity, -1});
      const Optimum lower = find_optimum(past, roots_, deadline_);
      if (lower.exact && lower.rate.over > 0) {
        coarse = coarser_rate(past, roots_, lower.rate, most_trees(wires_.gpus), deadline_);
        links = remove_switches(coarse.wires, roots_, coarse.rate, deadline_);
        packing = pack_trees(links, roots_, coarse.rate.over, deadline_);
        unit = coarse.wires.unit / static_cast<double>(links.scale);
      }
    }
    if (!packing.complete)
      return user_error(deadline_.over() ? "time ran out before the trees were complete"
                                         : "no trees were found that span the devices",
                        deadline_.over() ? "raise --time-limit" : "");
    half_.each = coarse.rate.over;
    half_.trees = std::move(packing.trees);
    half_.planned = unit * static_cast<double>(half_.each);
    set_equal_shares();
    return {};
  }

  Result<HalfForest> grow_fractions() {
    if (!switches_are_even())
      if (const RoutedTrees bounds = pack_routed_trees(wires_, roots_, half_.rate, false, deadline_);
          bounds.bound > 0)
        half_.rate = std::min(half_.rate, bounds.bound);
    RoutedTrees found = pack_routed_trees(wires_, roots_, half_.rate, true, deadline_);
    if (found.trees.empty()) return user_error("time ran out before trees were found", "raise --time-limit");
    half_.trees = std::move(found.trees);
    half_.planned = found.rate;
    half_.each = most_trees(wires_.gpus);
    for (Tree& tree : half_.trees)
      for (TreeEdge& edge : tree.edges) {
        std::vector<std::int32_t> links = found.routes[static_cast<std::size_t>(edge.route)];
        if (up_) std::ranges::reverse(links);
        edge.route = up_ ? book_.number(edge.to, edge.from, links) : book_.number(edge.from, edge.to, links);
      }
    return std::move(half_);
  }

  void set_equal_shares() {
    for (Tree& tree : half_.trees)
      tree.share = static_cast<double>(tree.times) / static_cast<double>(half_.each);
  }

  bool switches_are_even() const {
    std::vector<Amount> more(static_cast<std::size_t>(wires_.nodes), 0);
    for (const Wire& wire : wires_.wires) {
      more[static_cast<std::size_t>(wire.to)] += wire.capacity;
      more[static_cast<std::size_t>(wire.from)] -= wire.capacity;
    }
    return std::all_of(more.begin() + wires_.gpus, more.end(), [](Amount amount) { return amount == 0; });
  }

  // No switches and no parallel links.
  bool is_plain() const {
    std::set<std::pair<std::int32_t, std::int32_t>> joined;
    return wires_.nodes == wires_.gpus && std::ranges::all_of(wires_.wires, [&](const Wire& wire) {
             return joined.emplace(wire.from, wire.to).second;
           });
  }

  // Whether the links carry the trees if each edge takes shortest paths, alternating among equal
  // ones.
  bool shortest_paths_suffice() const {
    constexpr std::uint64_t kTurns = 12;
    constexpr double kSlack = 1.005;
    if (wires_.nodes == wires_.gpus) return true;
    std::map<std::pair<std::int32_t, std::int32_t>, double> carried;  // to, from
    for (const Tree& tree : half_.trees)
      for (const TreeEdge& edge : tree.edges)
        carried[up_ ? std::pair(edge.from, edge.to) : std::pair(edge.to, edge.from)] +=
            tree.share * half_.planned;
    cluster::Routes routes(topology_);
    std::vector<double> load(topology_.links.size(), 0);
    for (const auto& [ends, rate] : carried)
      for (std::uint64_t turn = 0; turn < kTurns; ++turn)
        if (const auto route = routes.route(ends.second, ends.first, turn))
          for (const std::int32_t link : *route) load[static_cast<std::size_t>(link)] += rate / kTurns;
    for (std::size_t l = 0; l < load.size(); ++l)
      if (load[l] > topology_.links[l].bytes_per_second * kSlack) return false;
    return true;
  }

  const cluster::Topology& topology_;
  const Wires wires_;
  const bool up_;
  const std::vector<std::int32_t>& roots_;
  RouteTable& book_;
  const Deadline& deadline_;
  HalfForest half_;
};

bool same_both_ways(const Wires& wires) {
  const auto listed = [](const Wires& of) {
    std::vector<std::tuple<std::int32_t, std::int32_t, Amount>> list;
    for (const Wire& wire : of.wires) list.emplace_back(wire.from, wire.to, wire.capacity);
    std::ranges::sort(list);
    return list;
  };
  return listed(wires) == listed(reversed(wires));
}

bool has_routes(const std::vector<Tree>& trees) {
  return std::ranges::any_of(trees, [](const Tree& tree) {
    return std::ranges::any_of(tree.edges, [](const TreeEdge& edge) { return edge.route >= 0; });
  });
}

bool are_whole(const HalfForest& half) {
  return std::ranges::all_of(half.trees, [&](const Tree& tree) {
    return std::abs(tree.share * static_cast<double>(half.each) - static_cast<double>(tree.times)) < 1e-9;
  });
}

// Sets the trees per root to `each`, as closely as the shares allow.
void set_times(HalfForest& half, Amount each) {
  for (std::size_t first = 0, end = 0; first < half.trees.size(); first = end) {
    std::vector<double> shares;
    for (; end < half.trees.size() && half.trees[end].root == half.trees[first].root; ++end)
      shares.push_back(half.trees[end].share);
    const std::vector<Amount> counts = round_shares(shares, each);
    for (std::size_t t = first; t < end; ++t) half.trees[t].times = counts[t - first];
  }
  half.each = each;
}

Result<Forest> find_forest(const cluster::Topology& topology, Kind kind, std::int32_t root, bool trees,
                           const Deadline& deadline, TreeShares shares) {
  WEFT_TRY(wires, wires_of(topology));
  const bool rooted = kind == Kind::broadcast || kind == Kind::reduce;
  const bool goes_up = kind == Kind::reduce || kind == Kind::reduce_scatter || kind == Kind::all_reduce;
  const bool goes_down = kind == Kind::broadcast || kind == Kind::all_gather || kind == Kind::all_reduce;
  if (!goes_up && !goes_down)
    return user_error(fmt::format("trees cannot implement this collective: {}", collective::name(kind)),
                      "all_gather, reduce_scatter, all_reduce, broadcast and reduce are made of trees");
  if (root < 0 || root >= wires.gpus)
    return user_error(fmt::format("the root must be one of {} devices, found {}", wires.gpus, root));
  std::vector<std::int32_t> roots(static_cast<std::size_t>(wires.gpus));
  std::iota(roots.begin(), roots.end(), 0);
  if (rooted) roots.assign(1, root);

  Forest forest;
  forest.kind = kind;
  forest.ranks = wires.gpus;
  forest.root = rooted ? root : 0;
  HalfForest up, down;
  RouteTable book(topology);
  if (goes_down) {
    WEFT_TRY(found, HalfGrower(topology, wires, false, roots, book, deadline).grow(trees, shares));
    down = std::move(found);
  }
  if (goes_up && goes_down && same_both_ways(wires) && !has_routes(down.trees)) {
    up = down;
  } else if (goes_up) {
    WEFT_TRY(found, HalfGrower(topology, reversed(wires), true, roots, book, deadline).grow(trees, shares));
    up = std::move(found);
  }
  const double blocks = static_cast<double>(roots.size());
  const auto together = [&](double one, double other) {
    if (!goes_up || !goes_down) return blocks * (goes_up ? one : other);
    return blocks / (1 / one + 1 / other);
  };
  forest.optimum = together(up.rate, down.rate);
  forest.without_switches = forest.optimum;
  if (kind == Kind::all_reduce)
    if (const auto found = reduce_in_network(topology, deadline); found && found->rate > forest.optimum) {
      forest.optimum = found->rate;
      forest.switch_root = found->root;
    }
  const HalfForest& narrow = goes_up && (!goes_down || up.rate < down.rate) ? up : down;
  for (const std::int32_t node : narrow.optimum.side)
    if (node < static_cast<std::int32_t>(topology.nodes.size())) forest.bottleneck.push_back(node);
  if ((goes_down ? down : up).each == 0 || (goes_up ? up : down).each == 0) return forest;
  if (goes_up && goes_down) {
    const Amount both = std::lcm(up.each, down.each), most = 4 * most_trees(wires.gpus);
    set_times(up, both <= most ? both : most);
    set_times(down, both <= most ? both : most);
  } else {
    set_times(goes_up ? up : down, (goes_up ? up : down).each);
  }
  forest.trees = goes_down ? down.each : up.each;
  forest.whole = are_whole(up) && are_whole(down);
  forest.planned = together(up.planned, down.planned);
  forest.routes = book.take();
  forest.up = std::move(up.trees);
  forest.down = std::move(down.trees);
  return forest;
}

}  // namespace

Result<Forest> grow_forest(const cluster::Topology& topology, Kind kind, std::int32_t root,
                           const Deadline& deadline, TreeShares shares) {
  return find_forest(topology, kind, root, true, deadline, shares);
}

Result<Forest> bound_forest(const cluster::Topology& topology, Kind kind, std::int32_t root,
                            const Deadline& deadline) {
  return find_forest(topology, kind, root, false, deadline, TreeShares::fractions);
}

}  // namespace weft::synthesis
