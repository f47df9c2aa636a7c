// weft/collectives/chunks/check_moves.h -- whether moves lie within their buffers and do what they should.
#pragma once
#include <cstdint>
#include <optional>

#include "weft/base/result.h"
#include "weft/collectives/chunks/moves.h"

namespace weft::collective {

// More than these are refused: neither the passes nor the checker would have memory for them.
inline constexpr std::int64_t kMostMoves = std::int64_t{1} << 23;
inline constexpr std::int64_t kMostMovedChunks = std::int64_t{1} << 23;   // check() takes 2^24 actions
inline constexpr std::int64_t kMostMemoryChunks = std::int64_t{1} << 25;  // over all ranks

// Succeeds iff the collective makes sense, every move lies within the buffers, and no local move reads
// what it writes.
Status check_moves(const Moves& moves);

// The first chunk of output that does not hold what the collective promises once all moves are done,
// one after another. A chunk is a sum of random words, one for each contribution, so that a missing or
// doubled one shows: wrong moves pass once in 2^64.
// REQUIRES: check_moves(moves).ok()
std::optional<Place> first_wrong(const Moves& moves);

}  // namespace weft::collective
