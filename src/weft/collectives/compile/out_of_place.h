// weft/collectives/compile/out_of_place.h -- runs an in-place algorithm on separate buffers.
//
//   all_reduce      copy input to output, then work in output
//   reduce_scatter  copy input to scratch, work there, and copy the rank's block to output: the output
//                   is too small, and the input must not be modified
#pragma once
#include "weft/collectives/chunks/moves.h"

namespace weft::collective {

// Returns out-of-place moves unchanged.
// REQUIRES: check_moves(moves).ok()
Moves out_of_place(const Moves& moves);

}  // namespace weft::collective
