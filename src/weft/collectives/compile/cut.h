// weft/collectives/compile/cut.h -- cuts long moves into pieces that fit a connection.
//
//   rank 0   send 4 chunks, receive 4 chunks       with 2 slots per connection both ranks
//   rank 1   send 4 chunks, receive 4 chunks       fill theirs and deadlock
//
//   rank 0   send 2, receive 2, send 2, receive 2  at most two chunks in flight
//
// The alternative, that one rank sends while the other receives, needs no cut but uses one
// direction of the link at a time.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "weft/collectives/chunks/moves.h"
#include "weft/collectives/compile/instructions.h"

namespace weft::collective {

// The piece size per move; 0: not cut. Moves are cut if they have more chunks than a connection
// holds and their blocks are on a cycle of sends. Empty if no move should be cut.
std::vector<std::int32_t> pieces(const Instructions& assigned, std::int32_t slots, std::size_t moves);

// Cuts move m into pieces of at most sizes[m] chunks.
Moves cut(const Moves& moves, std::span<const std::int32_t> sizes);

}  // namespace weft::collective
