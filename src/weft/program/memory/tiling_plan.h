// weft/program/memory/tiling_plan.h -- finds a schedule for tiling.h.
//
// Each operator starts as a step with its best tile. Then the pair of steps that gains most is
// fused, repeatedly, until no pair gains; candidates feed each other or read the same tensor.
// Finally, tensors are retained between consecutive steps. Tile sizes are even divisions of the
// outputs, those rounded up to multiples of the native tile, and halvings. Strips are those of the
// reduction; orders are plain or back and forth. No operator runs twice.
#pragma once
#include <vector>

#include "weft/program/memory/tiling.h"

namespace weft::memory {

struct TilingPlan {
  std::vector<TilingStep> steps;
  TilingCost price;
};

// Fails if check() does, and if some operator does not fit alone with any tile.
Result<TilingPlan> plan_tiling(const TilingProblem& problem);

}  // namespace weft::memory
