// weft/plan/spmd/local_halo.h -- a halo exchange in the plan of one rank: slice, exchange, concat.
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

// `operand` is this rank's block; invalid if the block is empty. `bordered` is the type of the
// block with its borders; invalid if that is empty, and then so is the result.
// REQUIRES: what.kind is halo, and its operand and result are nonempty along all other indices.
Result<plan::ValueId> add_local_halo(plan::Graph& graph, const ops::LocalExchange& what,
                                     plan::ValueId operand, plan::TypeId bordered);

}  // namespace weft::spmd
