// weft/collectives/compile/order.h -- one global order that the steps of every threadblock follow.
//
//   list              0 send (rank 0)   1 send (rank 1)   2 receive (rank 0)   3 receive (rank 1)
//   block of rank 0   0 send                              2 receive
//   block of rank 1                     1 send                                 3 receive
//
// The list is a feasible run: no connection ever holds more than `slots` chunks, messages are
// received in the order they were sent, and every instruction follows its dependences. Threadblocks
// that follow it cannot deadlock, however their speeds differ. The run is found by list scheduling:
// the ready instruction with the earliest start (its longest path) runs next, then the one with the
// lowest chunk.
//
//   A message may be sent when its receiver waits for nothing else and there is room. One that will be
//   forwarded starts only if it leaves a slot free; otherwise the messages of a ring could fill all
//   slots and none could move. One too long for the connection is forwarded while it arrives: sender
//   and receiver are adjacent in the list.
//
// If no instruction can run, the fused instructions that block progress are unfused.
#pragma once
#include <cstdint>

#include "weft/collectives/compile/instructions.h"

namespace weft::collective {

// REQUIRES: assign() returned the instructions; slots > 0.
Instructions order(const Instructions& assigned, std::int32_t slots);

// The time when the last block ends, in rough units: links are slower than memory, and every step
// has a fixed cost. Only meaningful for comparing orders of the same moves.
std::int64_t duration(const Instructions& ordered, std::int32_t slots);

}  // namespace weft::collective
