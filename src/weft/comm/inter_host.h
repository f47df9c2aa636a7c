// weft/comm/inter_host.h -- what of an algorithm goes from machine to machine.
//
//   machine 0: ranks 0 1   machine 1: ranks 2 3        moves 0->1, 1->3, 3->2: one of them crosses
//
// Ranks lie on machines in order, as many on each.
#pragma once
#include <cstdint>

#include "weft/collective/moves.h"

namespace weft::comm {

struct Crossing {
  std::int32_t steps = 0;  // crossings one after the other, at most
  // Crossings that a wire waits for, at most, before it carries the last of a piece, if it begins with what
  // is to cross: only then does the next piece begin its way.
  std::int32_t in_turn = 0;
  double wire = 0;  // shares of the message that leave the machine from which most leave
};

// REQUIRES: hosts divides the ranks.
Crossing crossing_of(const collective::Moves& moves, std::int32_t hosts);

}  // namespace weft::comm
