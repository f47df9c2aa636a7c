// weft/collectives/check/races.h -- accesses that meet in one cell with nothing to order them.
//
// In the order of one run, each read must come after the last write of its cell, and each write after
// all reads since the last write, or after that write where there were none. That orders every two
// accesses of which one writes, since "comes before" passes on. An action reads before it writes. What a
// full connection holds back is no order: another runtime has more slots.
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

// An action of several chunks that reads what it writes, but elsewhere: chunks of a small transfer move at
// the same time.
std::optional<Finding> find_overlap(const Actions& whole);

}  // namespace weft::collective
