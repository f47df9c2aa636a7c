// weft/collectives/reshard/replay.h -- verifies a reshard by executing its moves on real buffers.
#pragma once
#include <span>

#include "weft/collectives/reshard/reshard.h"

namespace weft::reshard {

// Limit on the elements over all devices.
constexpr std::int64_t kMostReplayed = std::int64_t{1} << 24;

// Fills every source with a distinct number per element, does the moves in order, and compares
// every element of every destination. Fails if a move reads what its sender does not hold yet, or
// writes what its receiver does not need or already has; if an element is missing or wrong; and if
// the tensor is too large. The error names the device and the element.
Status replay(const Reshard& reshard, std::span<const Move> moves);

}  // namespace weft::reshard
