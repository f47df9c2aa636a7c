// weft/collectives/compile/out_of_place.h -- an in-place algorithm on separate memory.
//
//   all_reduce      copy input to output, then everything in output
//   reduce_scatter  copy input to scratch, everything there, and the rank's block to output: the output
//                   has no room for the rest, and the input is not ours to write to
#pragma once
#include "weft/collectives/chunks/moves.h"

namespace weft::collective {

// Moves that are out of place come back as they are.
// REQUIRES: check_moves(moves).ok()
Moves out_of_place(const Moves& moves);

}  // namespace weft::collective
