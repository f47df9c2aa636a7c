// weft/collectives/compile/order.h -- one order of everything that every threadblock's steps follow.
//
//   list              0 send (rank 0)   1 send (rank 1)   2 receive (rank 0)   3 receive (rank 1)
//   block of rank 0   0 send                              2 receive
//   block of rank 1                     1 send                                 3 receive
//
// The list is a run that really works: no connection ever holds more than `slots` chunks, messages are
// taken in the order they were sent, and everything stands after what it waits for. Threadblocks that
// keep to it can therefore not block, however their speeds differ. The run is found by playing it: of what
// can be done now the earliest goes first (the longest path to it is shortest), then the lowest chunk.
//
//   A message may be sent when its receiver waits for nothing else and there is room. One that is passed
//   on starts only if it leaves a slot free, or the messages of a ring would fill it and none could move.
//   One too long for the connection is passed on as it comes: sender and receiver stand side by side.
//
// Where nothing can be done any more, the fused instructions that stand in the way are taken apart.
#pragma once
#include <cstdint>

#include "weft/collectives/compile/instructions.h"

namespace weft::collective {

// REQUIRES: instructions that assign() returned, slots > 0
Instructions order(const Instructions& assigned, std::int32_t slots);

// When the last block is done, in rough units: links are slower than memory, and every step costs a
// little. Only good for comparing orders of the same moves.
std::int64_t duration(const Instructions& ordered, std::int32_t slots);

}  // namespace weft::collective
