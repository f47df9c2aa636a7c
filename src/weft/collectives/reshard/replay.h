// weft/collectives/reshard/replay.h -- the judge of a reshard: does the moves with real buffers.
#pragma once
#include <span>

#include "weft/collectives/reshard/reshard.h"

namespace weft::reshard {

// The most elements that replay() holds on all devices together.
constexpr std::int64_t kMostReplayed = std::int64_t{1} << 24;

// Every source is given an array with a number of its own for each element, the moves are done one after the
// other, and every element of every destination is compared. Fails when a move reads what its sender does not
// hold yet, or writes what its receiver does not need or has already; when an element is missing or wrong;
// and when the tensor is too large for it. The error names the device and the element.
Status replay(const Reshard& reshard, std::span<const Move> moves);

}  // namespace weft::reshard
