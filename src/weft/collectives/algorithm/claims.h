// weft/collectives/algorithm/claims.h -- the cost an algorithm claims, and the cost of its moves.
//
//   STEPS  the longest chain of dependent messages: determines latency
//   WIRE   the most chunks that any rank sends to others: determines bandwidth time
//
// A message is a move between ranks. Messages depend on each other as memory accesses do: read
// after write, write after read, write after write.
#pragma once
#include <cstdint>
#include <optional>

#include "weft/base/result.h"
#include "weft/collectives/algorithm/algorithm.h"
#include "weft/collectives/chunks/moves.h"

namespace weft::collective {

struct Claims {
  std::optional<std::int64_t> steps, wire;  // empty: not claimed
};
Result<Claims> claims(const Algorithm& algorithm, const Arguments& arguments);

struct Measure {
  std::int64_t steps = 0, wire = 0;

  friend bool operator==(const Measure&, const Measure&) = default;
};
// REQUIRES: check_moves(moves).ok(), which holds for results of trace() and parse_moves().
Measure measure(const Moves& moves);

// Fails if the cost of the moves differs from what the algorithm claims.
// REQUIRES: trace(algorithm, arguments, ...) returned `moves`.
Status check_claims(const Algorithm& algorithm, const Arguments& arguments, const Moves& moves);

}  // namespace weft::collective
