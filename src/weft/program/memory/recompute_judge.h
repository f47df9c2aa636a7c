// weft/program/memory/recompute_judge.h -- replays steps of a recomputation and says what they take.
//
// Shares no code with what finds the steps: it keeps one flag for every x and every gradient, and obeys.
#pragma once
#include <cstdint>
#include <span>
#include <string>

#include "weft/base/result.h"
#include "weft/program/memory/recompute.h"

namespace weft::memory {

struct RecomputeReplay {
  double time = 0;
  std::int64_t peak = 0;      // the most that is resident at once, the input included
  std::size_t peak_step = 0;  // during which, the first such
  std::string held;           // what is resident then: "the input, x of a and b, gradients of b"
};

// Fails at the first step that cannot be done, or where a B is missing. The budget is the caller's to compare.
// REQUIRES: a graph that recompute() accepts.
Result<RecomputeReplay> replay(const RecomputeGraph& graph, std::span<const RecomputeStep> steps);

}  // namespace weft::memory
