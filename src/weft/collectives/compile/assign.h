// weft/collectives/compile/assign.h -- assigns channels to messages and blocks to instructions.
//
//   A connection (sender, receiver, channel) belongs to one block at either end, and a block has one
//   connection in and one out. A fused instruction ties the two:
//
//     0 --ch 0--> [rank 1, block 0] --ch 0--> 2         data from 0 is forwarded to 2,
//     0 --ch 1--> [rank 1, block 1] --ch 1--> 3         and on another channel to 3
//
// A message takes the requested channel, or the lowest one whose existing ties are compatible. If
// there is none, the fused instruction is unfused. An untied connection shares a block with the
// connection it mostly works with, or with the opposite direction between the same ranks, because
// blocks are scarce on a GPU. If they are not scarce, each connection has its own block, so that
// sends do not wait for unrelated receives. A local instruction goes to the block of its
// dependences.
#pragma once
#include <cstdint>

#include "weft/base/result.h"
#include "weft/collectives/compile/instructions.h"

namespace weft::collective {

struct AssignLimits {
  std::int32_t channels = 32;
  std::int32_t blocks = 0;  // per rank; 0: unlimited
  bool join = true;         // whether untied connections may share a block
};

// Fails if a move requests a channel, or a rank needs blocks, beyond the limits.
Result<Instructions> assign(const Instructions& instructions, const AssignLimits& limits);

}  // namespace weft::collective
