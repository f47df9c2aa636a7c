// weft/program/tasks/exchange.h -- how many elements go between whom in a collective.
//
//   all-gather of f32[b=8,d=4] along b over 3 ranks: blocks of 3, 3 and 2 rows, counts [12, 12, 8]
#pragma once
#include <span>

#include "weft/plan/ops/local_exchange.h"
#include "weft/program/tasks/program.h"

namespace weft::program {

// How the ranks lay out either side: what is joined or parted slowest, the rest in the order of the type.
// Ranks with other shares must agree on it, so it follows from the type alone, never from what would suit
// one of them.
Order exchange_order(const plan::Type& type, const ops::LocalExchange& what);

// The kernel of an `exchange` node. `reads` is empty where the rank gives nothing, `writes` where it gets
// nothing; else each is the one place of that side, or those of a bucket's members, side by side in order.
Exchange as_exchange(const plan::NodeView& node, std::span<const Place> reads, std::span<const Place> writes);

}  // namespace weft::program
