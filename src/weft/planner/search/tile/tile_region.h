// weft/planner/search/tile/tile_region.h -- find the nodes that can and should be tiled along an index.
//
//   %5 = contract %3, %4 {to=[b,s,d]}      b, s: a tile of %3 gives the same tile of %5, which can be
//   %6 = all-reduce %5 {axis=gpu}                reduced separately
//   %7 = layer-norm %6 {over=[d]}          d: no, the norm needs it whole
//   %8 = contract %7, %2 {to=[b,s,f]}
//
// A node can be tiled if the index is parallel in every operand that has it and in every result,
// and if the node does not depend on positions along it, as dropout does. An exchange can be tiled
// along indices that it does not move along.
//
// Ranks may hold blocks of the index. Then it is split in two, the block and the position within
// it, and tiles are slices of the latter. So an exchange may move blocks of the index it is tiled
// along.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "weft/parallel/distribute/distribute.h"

namespace weft::search {

// The index to tile a plan along.
struct TileIndex {
  Symbol index;
  std::int64_t blocks = 1;  // that ranks hold of it; 1: all ranks hold it whole

  friend bool operator==(const TileIndex&, const TileIndex&) = default;
};

bool can_be_cut(const distribute::DistributedPlan& plan, plan::NodeId node, const TileIndex& along);

// Collectives of activations that can be tiled along it. Those that only updates read are not
// exposed.
std::vector<plan::NodeId> collectives_to_cut(const distribute::DistributedPlan& plan, const TileIndex& along);

// How far the region extends around the collectives:
//   near        the product whose result is summed, and those that read gathered values
//   products    up to the next products on both sides
//   all         as far as possible
enum class TileReach : std::uint8_t { near, products, all };

// By node. A collective is tiled only if the region reaches a product to overlap with.
std::vector<bool> tile_region(const distribute::DistributedPlan& plan, const TileIndex& along,
                              std::span<const plan::NodeId> collectives, TileReach reach);

}  // namespace weft::search
