// test/unit/case/tile_case.h -- a plan whose collectives are split into a given number of tiles,
// regardless of cost.
#pragma once
#include <stdexcept>
#include <string_view>

#include "weft/planner/search/tile/cut_in_tiles.h"

namespace weft::search {

inline distribute::DistributedPlan tiled(const distribute::DistributedPlan& plain, std::string_view index,
                                         std::int64_t blocks, TileReach reach, std::int64_t tiles) {
  const TileIndex along{plain.graph.symbols().find(index), blocks};
  auto made =
      cut_in_tiles(plain, tile_region(plain, along, collectives_to_cut(plain, along), reach), along, tiles);
  if (!made.ok()) throw std::runtime_error(made.error().message);
  if (made->graph.node_count() == plain.graph.node_count()) throw std::runtime_error("nothing to cut");
  return std::move(made).value();
}

}  // namespace weft::search
