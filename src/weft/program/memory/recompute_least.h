// weft/program/memory/recompute_least.h -- the smallest feasible budget, with steps for it.
#pragma once
#include <cstdint>
#include <vector>

#include "weft/program/memory/recompute_model.h"

namespace weft::memory {

struct LeastMemory {
  std::int64_t bytes = 0;  // without the graph's input
  bool proven = false;     // whether no steps take less
  std::vector<RecomputeStep> steps;
};

// By dynamic programming over blocks if the graph splits into small ones; otherwise by recomputing
// the operands of each B from scratch. Proven if a single B needs as much.
LeastMemory least_memory_of(const RecomputeGraph& graph);

}  // namespace weft::memory
