// weft/collectives/compile/channels.h -- the channel of every message, and the fused instructions that none allows.
//
//   A chain is a message and what fused instructions make of it:  0 -> 1 -> 2 -> 3
//   It has one channel. On it rank 1 passes what comes from 0 on to 2, and so must every other chain of
//   that channel that comes to 1 from 0 or leaves it for 2 in a fused instruction.
//
// Where chains disagree, the fused instructions of the rarer kind are taken apart; where both kinds are
// about as frequent, as in two trees, each gets a channel.
//
// Part of assign.
#pragma once
#include <cstdint>
#include <vector>

#include "weft/base/result.h"
#include "weft/collectives/compile/instructions.h"

namespace weft::collective {

struct Channels {
  std::vector<std::int32_t> of_move;  // of each move that is a message; -1 for others
  std::vector<std::int32_t> apart;    // instructions to take apart, sorted
};

// Fails where a move asks for a channel that is not there.
Result<Channels> choose_channels(const Instructions& instructions, std::int32_t most);

}  // namespace weft::collective
