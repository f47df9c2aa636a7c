// weft/program/memory/recompute_polish.h -- removes unnecessary drops.
#pragma once
#include <cstdint>
#include <vector>

#include "weft/program/memory/recompute_model.h"

namespace weft::memory {

// Removes a drop and its recomputation if the value fits in `memory` in between. Those with the
// most time per byte held come first. REQUIRES: steps that replay() accepts; `memory` excludes the
// graph's input.
std::vector<RecomputeStep> without_needless_drops(const RecomputeModel& model,
                                                  std::vector<RecomputeStep> steps, std::int64_t memory);

}  // namespace weft::memory
