#include "weft/parallel/distribute/tiles.h"

#include <algorithm>
#include <utility>

#include "weft/plan/ops/operators.h"

namespace weft::distribute {

using plan::NodeId;

std::vector<Stretch> tiles_of(std::int64_t size, std::int64_t tiles) {
  std::vector<Stretch> cut;
  for (std::int64_t i = 0; i < tiles; ++i) cut.push_back({size * i / tiles, size * (i + 1) / tiles});
  return cut;
}

TileSlices::TileSlices(const DistributedPlan& plan) {
  using Cut = std::pair<plan::ValueId, Symbol>;
  std::map<Cut, std::vector<NodeId>> slices;
  for (std::size_t n = 0; n < plan.graph.node_count(); ++n) {
    const plan::NodeView node = plan.graph.view(NodeId(n));
    if (&node.op() == &ops::slice() && plan.is_own(node.id()))
      slices[{node.input(0), node.symbol(0)}].push_back(node.id());
  }
  for (auto& [cut, nodes] : slices) {
    const auto begin_of = [&](NodeId node) { return plan.graph.view(node).integer(1); };
    std::ranges::sort(nodes, {}, begin_of);
    const std::int64_t size = plan.graph.type(cut.first).size_of(cut.second);
    const auto count = static_cast<std::int64_t>(nodes.size());
    if (count < 2 || count > size) continue;
    const std::vector<Stretch> tiles = tiles_of(size, count);
    const bool are_tiles = std::ranges::equal(nodes, tiles, [&](NodeId node, const Stretch& tile) {
      return begin_of(node) == tile.begin && plan.graph.view(node).integer(2) == tile.end;
    });
    const plan::NodeView from = plan.graph.view(plan.graph.value(cut.first).producer);
    const bool in_blocks = &from.op() == &ops::split() && plan.is_own(from.id());
    for (std::int64_t i = 0; are_tiles && i < count; ++i)
      tiles_[nodes[static_cast<std::size_t>(i)]] = {i, count, plan.graph.text(cut.second), in_blocks};
  }
}

std::optional<Stretch> TileSlices::at(NodeId slice, std::int64_t size) const {
  const auto found = tiles_.find(slice);
  if (found == tiles_.end() || found->second.of > size) return std::nullopt;
  return tiles_of(size, found->second.of)[static_cast<std::size_t>(found->second.number)];
}

std::map<std::string, std::int64_t> TileSlices::most(std::int64_t blocks) const {
  std::map<std::string, std::int64_t> most;
  for (const auto& [slice, tile] : tiles_) {
    std::int64_t& tiles = most[std::string(tile.index)];
    tiles = std::max(tiles, tile.of * (tile.in_blocks ? blocks : 1));
  }
  return most;
}

std::optional<std::int64_t> blocks_at(const DistributedPlan& plan, const plan::NodeView& split,
                                      const plan::Mesh& mesh) {
  const plan::Dim block = split.type(1).dims[0];
  std::int64_t here = 1, there = 1;
  for (std::size_t axis = 0; axis < mesh.axes.size(); ++axis) {
    const bool slices = std::ranges::any_of(
        plan.layouts, [&](const plan::Layout& layout) { return layout.axes[axis].slices(block.index); });
    if (!slices) continue;
    here *= plan.mesh.axes[axis].ranks;
    there *= mesh.axes[axis].ranks;
  }
  if (here == 1 || here != block.size || split.type(1).rank() != 2) return std::nullopt;
  return there;
}

}  // namespace weft::distribute
