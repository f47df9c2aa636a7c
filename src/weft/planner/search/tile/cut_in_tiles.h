// weft/planner/search/tile/cut_in_tiles.h -- compute some nodes of a plan tile by tile.
//
//   %5 = contract %3, %4 {to=[b,d]}            %5 = slice %3 {along=b, begin=0, end=4}, %6 = slice %3 {.., 4, 8}
//   %6 = all-reduce %5 {axis=gpu}        =>    %7 = contract %5, %4, %8 = contract %6, %4
//   %7 = relu %6                               %9 = all-reduce %7, %10 = all-reduce %8     %9 overlaps with %8
//   %8 = reduce %7 {to=[d]}                    %11 = relu %9, %12 = relu %10
//                                              %13 = concat %11, %12 {along=b}
//                                              %14 = reduce %13 {to=[d]}
//
// Between tiled nodes, tiles are not concatenated: a chain of them runs tile by tile. Nodes keep
// their order, with all tiles of one node before the next node.
#pragma once
#include <cstdint>
#include <vector>

#include "weft/base/result.h"
#include "weft/parallel/distribute/distribute.h"
#include "weft/planner/search/tile/tile_region.h"

namespace weft::search {

// `region`: by node, from tile_region(). Fails if the index has fewer elements than tiles, or
// unequal blocks. REQUIRES: tiles > 1; the plan has no stages or micro-batches.
Result<distribute::DistributedPlan> cut_in_tiles(const distribute::DistributedPlan& plan,
                                                 const std::vector<bool>& region, const TileIndex& along,
                                                 std::int64_t tiles);

}  // namespace weft::search
