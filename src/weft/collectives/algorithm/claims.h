// weft/collectives/algorithm/claims.h -- what an algorithm says it costs, and what its moves do cost.
//
//   STEPS  the longest chain of messages that depend on one another: what latency pays for
//   WIRE   the most chunks that any one rank sends to others: what bandwidth pays for
//
// A message is a move between ranks. One depends on another when it reads what that wrote, writes what
// that read, or writes what that wrote.
#pragma once
#include <cstdint>
#include <optional>

#include "weft/base/result.h"
#include "weft/collectives/algorithm/algorithm.h"
#include "weft/collectives/chunks/moves.h"

namespace weft::collective {

struct Claims {
  std::optional<std::int64_t> steps, wire;  // none: the algorithm claims nothing
};
Result<Claims> claims(const Algorithm& algorithm, const Arguments& arguments);

struct Measure {
  std::int64_t steps = 0, wire = 0;

  friend bool operator==(const Measure&, const Measure&) = default;
};
// REQUIRES: check_moves(moves).ok(), as of what trace() and parse_moves() return.
Measure measure(const Moves& moves);

// Fails where the moves that came of the algorithm cost otherwise than it claims.
// REQUIRES: trace(algorithm, arguments, ...) returned `moves`.
Status check_claims(const Algorithm& algorithm, const Arguments& arguments, const Moves& moves);

}  // namespace weft::collective
