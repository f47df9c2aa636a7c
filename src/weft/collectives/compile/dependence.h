// weft/collectives/compile/dependence.h -- the dependences between moves.
//
//   0  copy   input[0] of 0 to scratch[0] of 1
//   1  reduce scratch[0] of 1 into input[0] of 1     1 to   after 0 to (raw)
//   2  copy   input[1] of 0 to scratch[0] of 1       2 to   after 1 to (war)
//
// A move between ranks has two ends: the sending end reads, the receiving end writes. All
// dependences of an end are on the same rank; between ranks there is only the message. A local move
// has one end, the one that writes.
//
// Dependences implied by two others of the same rank are omitted. A writer waits for the ends that
// read the chunk since it was last written, and for the last writer only if there were none.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "weft/collectives/chunks/cells.h"
#include "weft/collectives/chunks/moves.h"

namespace weft::collective {

// Move m reads at end 2*m and writes at end 2*m + 1. A local move does both at the latter.
constexpr std::int32_t from_end(std::int32_t move) { return 2 * move; }
constexpr std::int32_t to_end(std::int32_t move) { return 2 * move + 1; }

struct Dependence {
  enum class Why : std::uint8_t { raw, war, waw };  // read after write, write after read, write after write
  std::int32_t end = 0;                             // the end that must come first
  Why why = Why::raw;

  friend bool operator==(const Dependence&, const Dependence&) = default;
};

struct Dependences {
  std::vector<std::int64_t> first;  // end e has list[first[e]] up to list[first[e + 1]]
  std::vector<Dependence> list;     // sorted within each end

  std::span<const Dependence> of(std::int32_t end) const {
    return std::span(list).subspan(static_cast<std::size_t>(first[end]),
                                   static_cast<std::size_t>(first[end + 1] - first[end]));
  }
};

// REQUIRES: check_moves(moves).ok()
Dependences find_dependences(const Moves& moves, const Cells& cells);

// Lists every move, followed by the dependences of its ends.
std::string print(const Moves& moves, const Dependences& dependences);

}  // namespace weft::collective
