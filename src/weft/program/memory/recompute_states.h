// weft/program/memory/recompute_states.h -- the exact solver: the cheapest path through all states of a small model.
//
// A state is which B is next and which x are there: with n nodes 3 * 2^n of them, fewer under a budget. F and B
// are free and a drop costs its F (see recompute.h), so a path's cost is the time that is spent twice.
#pragma once
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "weft/program/memory/recompute_model.h"

namespace weft::memory {

// Models up to this size are solved exactly: 0.8 million states, in a second at worst.
inline constexpr std::size_t kMostExactNodes = 18;

struct StatePath {
  double cost = 0;  // of what is dropped
  std::vector<RecomputeStep> steps;
};

// From `there` (a bit for each x) to the end of all B. Nothing where `memory` is too little; it holds all x and
// gradients, but neither the base nor the input.
// REQUIRES: at most kMostExactNodes nodes.
std::optional<StatePath> cheapest_path(const RecomputeModel& model, std::int64_t memory,
                                       std::uint32_t there = 0);

// The least memory with which there is such a path.
// REQUIRES: as above.
std::int64_t least_memory(const RecomputeModel& model, std::uint32_t there = 0);

}  // namespace weft::memory
