// weft/program/memory/recompute_least.h -- the least budget, and steps that get by with it, whatever they cost.
#pragma once
#include <cstdint>
#include <vector>

#include "weft/program/memory/recompute_model.h"

namespace weft::memory {

struct LeastMemory {
  std::int64_t bytes = 0;  // without the graph's input
  bool proven = false;     // no steps take less
  std::vector<RecomputeStep> steps;
};

// By dynamic programming over blocks where the graph falls into small ones; else by computing what each B needs
// from nothing. Proven where one B takes as much by itself.
LeastMemory least_memory_of(const RecomputeGraph& graph);

}  // namespace weft::memory
