// weft/planner/search/tile/tile_exchanges.h -- tiled collectives that overlap with the products around them.
//
//   compute   | product ------- |                 | product 1 | product 2 | next 1 | next 2 |
//   axis gpu                    | all-reduce |              | reduce 1  | reduce 2 |
//
// A collective waits for the whole product before it, and the next product waits for the whole
// collective, though each tile of one needs only a tile of the other. So both are split along an
// index that neither sums over (b, s, ..), together with the nodes between them. This covers
// all-gather then product, product then reduce-scatter or all-reduce, and all-to-all around
// experts. The simulated step decides which index, how far around the collectives (up to the next
// products, or as far as possible) and how many tiles: smaller products and calls are less
// efficient, and values that are needed whole must be concatenated. The fastest plan is used if it
// is faster by `least_gain` and within memory.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "weft/base/result.h"
#include "weft/planner/search/distribution/evaluator.h"

namespace weft::search {

struct TileOptions {
  double least_gain = 0.02;  // share of the step time
  double memory_bytes = 0;   // limit per rank; 0: no limit
  std::int64_t tiles = 0;    // above 0: use this number, whatever it gains
};

// The most tiles that the search tries, and that a user may set.
constexpr std::int64_t kMostTilesTried = 8, kMostTiles = 64;

struct TiledExchanges {
  std::optional<PredictedPlan> plan;  // none: unchanged
  std::string said;                   // "48 all-reduces in 4 tiles along s"; without a plan, the reason
};

Result<TiledExchanges> tile_exchanges(const PredictedPlan& before, const Machine& machine,
                                      const TileOptions& options = {});

}  // namespace weft::search
