// weft/collectives/compile/dependence.h -- which moves must wait for which.
//
//   0  copy   input[0] of 0 to scratch[0] of 1
//   1  reduce scratch[0] of 1 into input[0] of 1     1 to   after 0 to (raw)
//   2  copy   input[1] of 0 to scratch[0] of 1       2 to   after 1 to (war)
//
// A move between ranks has two ends: where it is sent from (it reads there) and where it arrives (it
// writes there). What one end waits for always happened on the same rank; between ranks there is only
// the message. A local move has one end, the one that writes.
//
// Listed is what is needed, not all that is true: what follows from other dependences of the same rank
// in one step is left out. So a writer waits for those who read the chunk since it was last written,
// and for that last writer only where nobody did.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "weft/collectives/chunks/cells.h"
#include "weft/collectives/chunks/moves.h"

namespace weft::collective {

// Ends are numbered: move m reads at end 2*m and writes at end 2*m + 1. A local move does both there.
constexpr std::int32_t from_end(std::int32_t move) { return 2 * move; }
constexpr std::int32_t to_end(std::int32_t move) { return 2 * move + 1; }

struct Dependence {
  enum class Why : std::uint8_t { raw, war, waw };  // read after write, write after read, write after write
  std::int32_t end = 0;                             // what must come first
  Why why = Why::raw;

  friend bool operator==(const Dependence&, const Dependence&) = default;
};

struct Dependences {
  std::vector<std::int64_t> first;  // of end e: list[first[e]] up to list[first[e + 1]]
  std::vector<Dependence> list;     // sorted by end

  std::span<const Dependence> of(std::int32_t end) const {
    return std::span(list).subspan(static_cast<std::size_t>(first[end]),
                                   static_cast<std::size_t>(first[end + 1] - first[end]));
  }
};

// REQUIRES: check_moves(moves).ok()
Dependences find_dependences(const Moves& moves, const Cells& cells);

// Every move, and under it what its ends wait for.
std::string print(const Moves& moves, const Dependences& dependences);

}  // namespace weft::collective
