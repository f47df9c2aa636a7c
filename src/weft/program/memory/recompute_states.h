// weft/program/memory/recompute_states.h -- exact solver: shortest path over all states.
//
// A state is the next B and the set of x held: for n nodes 3 * 2^n states, fewer under a budget. F
// and B cost nothing and a drop costs its F (see recompute.h), so the cost of a path is its
// recomputation time.
#pragma once
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "weft/program/memory/recompute_model.h"

namespace weft::memory {

// Models up to this size are solved exactly: 0.8 million states, at most one second.
inline constexpr std::size_t kMostExactNodes = 18;

struct StatePath {
  double cost = 0;  // total F of drops
  std::vector<RecomputeStep> steps;
};

// From `there` (a bit per x) to the end of all B. Empty if `memory` is too small; it covers all x
// and gradients, but neither the base nor the input. REQUIRES: at most kMostExactNodes nodes.
std::optional<StatePath> cheapest_path(const RecomputeModel& model, std::int64_t memory,
                                       std::uint32_t there = 0);

// The least memory for which there is such a path. REQUIRES: at most kMostExactNodes nodes.
std::int64_t least_memory(const RecomputeModel& model, std::uint32_t there = 0);

}  // namespace weft::memory
