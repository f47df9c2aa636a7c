// weft/program/memory/tiling_plan.h -- finds a schedule for tiling.h.
//
// Operators start alone, each with its best tile. Then the two steps that gain most by becoming one are joined,
// those that feed each other or read the same tensor, until no pair gains; then tensors are retained between steps
// that follow each other. Tiles are even parts of the outputs, as they are and up to multiples of the native tile, and
// halvings; strips are those of the reduction, orders plain or back and forth. No operator is run twice.
#pragma once
#include <vector>

#include "weft/program/memory/tiling.h"

namespace weft::memory {

struct TilingPlan {
  std::vector<TilingStep> steps;
  TilingPrice price;
};

// Fails where check() does, or where some operator does not fit by itself, whatever its tile.
Result<TilingPlan> plan_tiling(const TilingProblem& problem);

}  // namespace weft::memory
