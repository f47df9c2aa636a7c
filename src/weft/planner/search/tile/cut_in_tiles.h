// weft/planner/search/tile/cut_in_tiles.h -- a plan of a mesh with some of its nodes made tile by tile.
//
//   %5 = contract %3, %4 {to=[b,d]}            %5 = slice %3 {along=b, begin=0, end=4}, %6 = slice %3 {.., 4, 8}
//   %6 = all-reduce %5 {axis=gpu}        =>    %7 = contract %5, %4, %8 = contract %6, %4
//   %7 = relu %6                               %9 = all-reduce %7, %10 = all-reduce %8     %9 travels beside %8
//   %8 = reduce %7 {to=[d]}                    %11 = relu %9, %12 = relu %10
//                                              %13 = concat %11, %12 {along=b}
//                                              %14 = reduce %13 {to=[d]}
//
// What is tiled and read by what is tiled is never put together: a chain of such nodes goes tile by tile. Nodes come
// in the order they had, all tiles of one before the next.
#pragma once
#include <cstdint>
#include <vector>

#include "weft/base/result.h"
#include "weft/parallel/distribute/distribute.h"
#include "weft/planner/search/tile/tile_region.h"

namespace weft::search {

// `region`: by node, as tile_region() gives it. Fails where the index has fewer elements than tiles, or blocks
// that are not alike. REQUIRES: tiles > 1; the plan is not cut in time.
Result<distribute::DistributedPlan> cut_in_tiles(const distribute::DistributedPlan& plan,
                                                 const std::vector<bool>& region, const TileIndex& along,
                                                 std::int64_t tiles);

}  // namespace weft::search
