// weft/program/tasks/exchange.h -- the element counts of collectives.
//
//   all-gather of f32[b=8,d=4] along b over 3 ranks: blocks of 3, 3 and 2 rows, counts [12, 12, 8]
#pragma once
#include <span>

#include "weft/plan/ops/local_exchange.h"
#include "weft/program/tasks/program.h"

namespace weft::program {

// The memory order of operand and result: the index that is joined or split runs slowest, the
// others in the order of the type. Ranks with different shards must agree, so it depends only on
// the type and not on the rank.
Order exchange_order(const plan::Type& type, const ops::LocalExchange& what);

// The kernel of an `exchange` node. `reads` is empty if the rank sends nothing, `writes` if it
// receives nothing. Otherwise each is the single place of that side, or the adjacent places of a
// bucket's members, in order.
Exchange as_exchange(const plan::NodeView& node, std::span<const Place> reads, std::span<const Place> writes);

}  // namespace weft::program
