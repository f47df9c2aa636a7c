#include "weft/synthesis/forest.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "weft/synthesis/coarser_rate.h"
#include "weft/synthesis/in_network.h"
#include "weft/synthesis/symmetry.h"

namespace weft::synthesis {
namespace {

using collective::Kind;

// Trees of a root: few devices may have many, as the exact optimum needs them.
constexpr Amount kMostTrees = 16;
constexpr Amount kMostWork = 1 << 13;  // trees times devices squared

// Devices that are not all alike: what is kept for them grows with their number cubed.
constexpr std::int32_t kMostUnlike = 256;

Amount most_trees(std::int32_t gpus) {
  return std::max(kMostTrees, kMostWork / (static_cast<Amount>(gpus) * gpus));
}

struct HalfForest {
  Optimum optimum;
  std::vector<Tree> trees;
  Amount each = 0;
  double rate = 0;       // bytes per second of a root at the optimum
  double tree_rate = 0;  // of one tree
};

// One direction: from all roots to all devices.
Result<HalfForest> grow_half(const Wires& wires, const std::vector<std::int32_t>& roots, bool trees,
                             const Deadline& deadline) {
  HalfForest half;
  // Where all devices are alike, one speaks for all.
  const std::optional<Symmetry> symmetry =
      roots.size() == static_cast<std::size_t>(wires.gpus) ? find_symmetry(wires, deadline) : std::nullopt;
  half.optimum = find_optimum(wires, roots, deadline, symmetry.has_value());
  half.rate = half.optimum.rate.value() * wires.unit;
  if (!half.optimum.exact && !trees) return half;
  if (!half.optimum.exact)
    return user_error("time ran out before the optimum was known", "give it more time");
  if (!trees) return half;
  if (symmetry) {
    if (std::optional<OrbitTrees> found =
            grow_orbit(wires, *symmetry, half.optimum.rate, most_trees(wires.gpus))) {
      half.trees = std::move(found->trees);
      half.each = found->each;
      half.tree_rate = half.rate * found->efficiency / static_cast<double>(found->each);
      return half;
    }
  }
  if (wires.gpus > kMostUnlike) return half;
  CoarserRate coarse = coarser_rate(wires, roots, half.optimum.rate, most_trees(wires.gpus), deadline);
  LogicalLinks links = remove_switches(coarse.wires, roots, coarse.rate, deadline);
  Packing packing = pack_trees(links, roots, coarse.rate.over, deadline);
  double unit = coarse.wires.unit / static_cast<double>(links.scale);
  if (!packing.complete && !deadline.over()) {
    // Switches that bring more than they take on cost something: pack what the links past them carry.
    Wires past;
    past.gpus = past.nodes = wires.gpus;
    past.unit = unit;
    for (std::size_t l = 0; l < links.links.size(); ++l)
      past.wires.push_back({links.links[l].from, links.links[l].to, links.links[l].capacity, -1});
    const Optimum lower = find_optimum(past, roots, deadline);
    if (lower.exact && lower.rate.over > 0) {
      coarse = coarser_rate(past, roots, lower.rate, most_trees(wires.gpus), deadline);
      links = remove_switches(coarse.wires, roots, coarse.rate, deadline);
      packing = pack_trees(links, roots, coarse.rate.over, deadline);
      unit = coarse.wires.unit / static_cast<double>(links.scale);
    }
  }
  if (!packing.complete)
    return user_error(deadline.over() ? "time ran out before the trees were complete"
                                      : "no trees were found that span the devices",
                      deadline.over() ? "give it more time" : "");
  half.each = coarse.rate.over;
  half.trees = std::move(packing.trees);
  half.tree_rate = unit;
  return half;
}

bool same_both_ways(const Wires& wires) {
  const auto listed = [](const Wires& of) {
    std::vector<std::tuple<std::int32_t, std::int32_t, Amount>> list;
    for (const Wire& wire : of.wires) list.emplace_back(wire.from, wire.to, wire.capacity);
    std::ranges::sort(list);
    return list;
  };
  return listed(wires) == listed(reversed(wires));
}

// As many trees from each root as `each`.
void multiply(HalfForest& half, Amount each) {
  for (Tree& tree : half.trees) tree.times *= each / half.each;
  half.tree_rate *= static_cast<double>(half.each) / static_cast<double>(each);
  half.each = each;
}

Result<Forest> find_forest(const cluster::Topology& topology, Kind kind, std::int32_t root, bool trees,
                           const Deadline& deadline) {
  WEFT_TRY(wires, wires_of(topology));
  const bool rooted = kind == Kind::broadcast || kind == Kind::reduce;
  const bool goes_up = kind == Kind::reduce || kind == Kind::reduce_scatter || kind == Kind::all_reduce;
  const bool goes_down = kind == Kind::broadcast || kind == Kind::all_gather || kind == Kind::all_reduce;
  if (!goes_up && !goes_down)
    return user_error(fmt::format("no trees make a collective of this kind: {}", collective::name(kind)),
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
  if (goes_down) {
    WEFT_TRY(found, grow_half(wires, roots, trees, deadline));
    down = std::move(found);
  }
  if (goes_up && goes_down && same_both_ways(wires)) {
    up = down;
  } else if (goes_up) {
    WEFT_TRY(found, grow_half(reversed(wires), roots, trees, deadline));
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
    const Amount each = std::lcm(up.each, down.each);
    if (each > 4 * most_trees(wires.gpus))
      return user_error("the trees up and down do not match in number", "synthesize either way alone");
    multiply(up, each);
    multiply(down, each);
  }
  forest.trees = goes_down ? down.each : up.each;
  const auto each = static_cast<double>(forest.trees);
  forest.planned = together(up.tree_rate * each, down.tree_rate * each);
  forest.tree_rate = forest.planned / blocks / each;
  forest.up = std::move(up.trees);
  forest.down = std::move(down.trees);
  return forest;
}

}  // namespace

Result<Forest> grow_forest(const cluster::Topology& topology, Kind kind, std::int32_t root,
                           const Deadline& deadline) {
  return find_forest(topology, kind, root, true, deadline);
}

Result<Forest> bound_forest(const cluster::Topology& topology, Kind kind, std::int32_t root,
                            const Deadline& deadline) {
  return find_forest(topology, kind, root, false, deadline);
}

}  // namespace weft::synthesis
