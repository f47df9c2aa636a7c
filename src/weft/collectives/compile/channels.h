// weft/collectives/compile/channels.h -- chooses channels, and the instructions to unfuse.
//
//   A chain is a message and the fused instructions that forward it:  0 -> 1 -> 2 -> 3
//   It has one channel. On it rank 1 forwards from 0 to 2, and so must every other chain of the
//   channel that enters 1 from 0 or leaves it for 2 in a fused instruction.
//
// If chains conflict, instructions of the rarer kind are unfused. If both kinds are about
// equally frequent, as in two trees, each gets a channel.
//
// Part of assign.
#pragma once
#include <cstdint>
#include <vector>

#include "weft/base/result.h"
#include "weft/collectives/compile/instructions.h"

namespace weft::collective {

struct Channels {
  std::vector<std::int32_t> of_move;  // per move that is a message; -1 for others
  std::vector<std::int32_t> apart;    // instructions to unfuse, sorted
};

// Fails if a move requests a channel that does not exist.
Result<Channels> choose_channels(const Instructions& instructions, std::int32_t most);

}  // namespace weft::collective
