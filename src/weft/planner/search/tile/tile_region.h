// weft/planner/search/tile/tile_region.h -- which nodes of a plan of a mesh can be cut along an index, and which should.
//
//   %5 = contract %3, %4 {to=[b,s,d]}      b, s: a part of %3 gives that part of %5, of which a part travels
//   %6 = all-reduce %5 {axis=gpu}
//   %7 = layer-norm %6 {over=[d]}          d: no, the norm needs it whole
//   %8 = contract %7, %2 {to=[b,s,f]}
//
// A node can be cut where a parallel loop walks the index in every operand that has it and in every result, and no
// place along it matters (dropout, positions). What travels is cut along what it does not move along.
//
// Ranks may hold the index in blocks. Then every block is cut: the index is read as two, which block and where in
// it, and tiles are cut of the latter. That way an exchange may move blocks of the index that it is cut along.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "weft/parallel/distribute/distribute.h"

namespace weft::search {

// What a plan is cut along.
struct TileIndex {
  Symbol index;
  std::int64_t blocks = 1;  // that ranks hold of it; 1: all of them hold it whole

  friend bool operator==(const TileIndex&, const TileIndex&) = default;
};

bool can_be_cut(const distribute::DistributedPlan& plan, plan::NodeId node, const TileIndex& along);

// The collectives of activations that can be cut along it: what nobody but updates reads waits for nothing.
std::vector<plan::NodeId> collectives_to_cut(const distribute::DistributedPlan& plan, const TileIndex& along);

// How far around the collectives a plan is cut:
//   near        with the product that makes what is summed, and those that read what is gathered
//   products    up to the next products on both sides
//   all         as far as it can be
enum class TileReach : std::uint8_t { near, products, all };

// By node. A collective is cut where a product is reached: else there is nothing to travel beside.
std::vector<bool> tile_region(const distribute::DistributedPlan& plan, const TileIndex& along,
                              std::span<const plan::NodeId> collectives, TileReach reach);

}  // namespace weft::search
