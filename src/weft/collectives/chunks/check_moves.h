// weft/collectives/chunks/check_moves.h -- checks that moves stay in their buffers and are correct.
#pragma once
#include <cstdint>
#include <optional>

#include "weft/base/result.h"
#include "weft/collectives/chunks/moves.h"

namespace weft::collective {

// Larger inputs are rejected: neither the passes nor the checker would have the memory.
inline constexpr std::int64_t kMostMoves = std::int64_t{1} << 23;
inline constexpr std::int64_t kMostMovedChunks = std::int64_t{1} << 23;   // check() accepts 2^24 actions
inline constexpr std::int64_t kMostMemoryChunks = std::int64_t{1} << 25;  // over all ranks

// Succeeds iff the collective is valid, every move lies within the buffers, and no local move reads
// what it writes.
Status check_moves(const Moves& moves);

// The first output chunk that is wrong after all moves were done in order. A chunk is a sum of
// random words, one per contribution, so a missing or doubled contribution changes it. The
// probability that wrong moves pass is 2^-64.
// REQUIRES: check_moves(moves).ok()
std::optional<Place> first_wrong(const Moves& moves);

}  // namespace weft::collective
