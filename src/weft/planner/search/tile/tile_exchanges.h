// weft/planner/search/tile/tile_exchanges.h -- collectives that travel tile by tile beside the products around them.
//
//   compute   | product ------- |                 | product 1 | product 2 | next 1 | next 2 |
//   axis gpu                    | all-reduce |              | reduce 1  | reduce 2 |
//
// A collective waits for the whole product before it, and the next product for the whole collective, though a part of
// the one needs no more than a part of the other. So both are cut along an index that neither adds up (b, s, ..), and
// with them what lies between: all-gather then product, product then reduce-scatter or all-reduce, all-to-all then
// experts and back are one and the same. Which index, how far around the collectives (up to the next products, or as
// far as it goes) and how many tiles is what the simulated step says: smaller products and calls are dearer, and
// what somebody needs whole is put together by a copy. The quickest stands, if it is quicker by `least_gain` and no
// larger than it may be.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "weft/base/result.h"
#include "weft/planner/search/distribution/evaluator.h"

namespace weft::search {

struct TileOptions {
  double least_gain = 0.02;  // of the step
  double memory_bytes = 0;   // that a rank may take; 0: no limit
  std::int64_t tiles = 0;    // above 0: so many, whatever they gain
};

// The most tiles that a search tries, and that may be asked for.
constexpr std::int64_t kMostTilesTried = 8, kMostTiles = 64;

struct TiledExchanges {
  std::optional<PredictedPlan> plan;  // none: it stays as it is
  std::string said;                   // "48 all-reduces in 4 tiles along s"; where there is no plan, why not
};

Result<TiledExchanges> tile_exchanges(const PredictedPlan& before, const Machine& machine,
                                      const TileOptions& options = {});

}  // namespace weft::search
