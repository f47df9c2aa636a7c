// weft/collectives/compile/split.h -- turns a move between ranks into an instruction at either end.
//
//   copy   input[0] of 0 to output[0] of 1      rank 0: send input[0]    rank 1: receive output[0]
//   reduce input[2] of 1 into input[2] of 0     rank 1: send input[2]    rank 0: receive_reduce_copy input[2]
//   copy   input[0] of 2 to output[2] of 2      rank 2: copy input[0] -> output[2]
#pragma once
#include "weft/collectives/chunks/moves.h"
#include "weft/collectives/compile/dependence.h"
#include "weft/collectives/compile/instructions.h"

namespace weft::collective {

// Removes copies of a chunk to itself.
Instructions split(const Moves& moves, const Cells& cells, const Dependences& dependences);

}  // namespace weft::collective
