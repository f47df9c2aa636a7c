// weft/collectives/check/races.h -- finds conflicting accesses to a cell that are unordered.
//
// In the order of one run, each read must come after the last write of its cell, and each write
// after all reads since the last write, or after that write if there were none. By transitivity
// this orders every two conflicting accesses. An action reads before it writes. Back-pressure of a
// full connection is not an order: another runtime has more slots.
#pragma once
#include <cstdint>
#include <optional>
#include <span>

#include "weft/collectives/check/check.h"
#include "weft/collectives/check/happens_before.h"
#include "weft/collectives/chunks/actions.h"

namespace weft::collective {

std::optional<Finding> find_race(const Actions& actions, const HappensBefore& graph,
                                 std::span<const std::int32_t> order);

// Finds an action of several chunks whose source and target ranges overlap at different offsets:
// the chunks of a small transfer move at the same time.
std::optional<Finding> find_overlap(const Actions& whole);

}  // namespace weft::collective
