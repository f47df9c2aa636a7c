// weft/plan/spmd/local_halo.h -- a halo in the plan of one rank: what it sends, and its block with its borders.
//
//   rank 1 of 3, rows 4-7 of 12, borders of one row:
//
//   %2 = slice %1 {begin=0, end=1}      for rank 0
//   %3 = slice %1 {begin=3, end=4}      for rank 2
//   %4 = concat %2, %3
//   %5 = exchange %4 {kind=halo ..}     rows 3 and 8
//   %6 = slice %5 {begin=0, end=1}
//   %7 = slice %5 {begin=1, end=2}
//   %8 = concat %6, %1, %7              rows 3-8
#pragma once
#include "weft/plan/graph/graph.h"
#include "weft/plan/ops/local_exchange.h"

namespace weft::spmd {

// `operand` is this rank's block, invalid where it is empty; `bordered` the type of the block with its
// borders, without one where that is empty. The result is invalid then too.
// REQUIRES: what.kind is halo, and its operand and result have elements along all other indices.
Result<plan::ValueId> add_local_halo(plan::Graph& graph, const ops::LocalExchange& what,
                                     plan::ValueId operand, plan::TypeId bordered);

}  // namespace weft::spmd
