// weft/collectives/compile/assign.h -- which channel a message takes, and which threadblock does what.
//
//   A connection (sender, receiver, channel) belongs to one block at either end, and a block has one
//   connection in and one out. A fused instruction ties the two:
//
//     0 --ch 0--> [rank 1, block 0] --ch 0--> 2         what comes from 0 goes on to 2,
//     0 --ch 1--> [rank 1, block 1] --ch 1--> 3         and on another channel to 3
//
// Messages take the channel asked for, or the lowest one on which their ties agree with the ties already
// made; where there is none the instruction is taken apart. Connections that nothing ties share a block
// with the one they mostly work with, or with the other direction of the same pair of ranks: blocks are
// scarce on a GPU. Where they are not, each has its own, and what is sent waits for no receipt that it does
// not need. A local instruction goes where what it waits for happens.
#pragma once
#include <cstdint>

#include "weft/base/result.h"
#include "weft/collectives/compile/instructions.h"

namespace weft::collective {

struct AssignLimits {
  std::int32_t channels = 32;
  std::int32_t blocks = 0;  // of a rank; 0: any number
  bool join = true;         // whether connections that nothing ties may share a block
};

// Fails where a move asks for a channel, or ranks need blocks, that there are not.
Result<Instructions> assign(const Instructions& instructions, const AssignLimits& limits);

}  // namespace weft::collective
