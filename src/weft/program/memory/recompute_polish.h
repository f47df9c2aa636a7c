// weft/program/memory/recompute_polish.h -- takes back drops that were not needed.
#pragma once
#include <cstdint>
#include <vector>

#include "weft/program/memory/recompute_model.h"

namespace weft::memory {

// Where what is dropped and computed again fits into `memory` all the time between, it is not dropped. The most
// time for the bytes that it holds comes first.
// REQUIRES: steps that the judge accepts, `memory` without the graph's input.
std::vector<RecomputeStep> without_needless_drops(const RecomputeModel& model,
                                                  std::vector<RecomputeStep> steps, std::int64_t memory);

}  // namespace weft::memory
