// weft/collectives/compile/cut.h -- long moves in pieces that a connection can hold.
//
//   rank 0   send 4 chunks, receive 4 chunks       with 2 slots a connection both ranks
//   rank 1   send 4 chunks, receive 4 chunks       fill theirs and wait for ever
//
//   rank 0   send 2, receive 2, send 2, receive 2  never more than two chunks on the way
//
// The alternative, that one rank sends while the other receives, needs no cut but uses one direction of
// the link at a time.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "weft/collectives/chunks/moves.h"
#include "weft/collectives/compile/instructions.h"

namespace weft::collective {

// For each move the pieces it should come in, 0 for whole: those of more chunks than a connection takes
// at once, between blocks that send to each other, perhaps over others. Empty where no move should be cut.
std::vector<std::int32_t> pieces(const Instructions& assigned, std::int32_t slots, std::size_t moves);

// Cuts move m into pieces of at most sizes[m] chunks.
Moves cut(const Moves& moves, std::span<const std::int32_t> sizes);

}  // namespace weft::collective
