// weft/program/memory/recompute_replay.h -- replays recomputation steps and measures them.
//
// Shares no code with the solvers: it keeps a flag per x and per gradient, and executes the steps.
#pragma once
#include <cstdint>
#include <span>
#include <string>

#include "weft/base/result.h"
#include "weft/program/memory/recompute.h"

namespace weft::memory {

struct RecomputeReplay {
  double time = 0;
  std::int64_t peak = 0;      // most memory in use at once, including the input
  std::size_t peak_step = 0;  // the first step with that memory
  std::string held;           // what is held then: "the input, x of a and b, gradients of b"
};

// Fails at the first invalid step, and if a B is missing. The caller compares with the budget.
// REQUIRES: a graph that recompute() accepts.
Result<RecomputeReplay> replay(const RecomputeGraph& graph, std::span<const RecomputeStep> steps);

}  // namespace weft::memory
