// weft/collectives/chunks/moves.h -- an unrolled algorithm: a sequence of chunk moves.
//
//   copy   input[0] of 0 to output[0] of 1         output[0] of 1  = input[0] of 0
//   reduce input[2] of 1 into input[2] of 0        input[2] of 0  += input[2] of 1
//
// Moves have sequential semantics; compile() finds out which may run concurrently. A reduction adds
// on the right: its target is the left operand.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "weft/collectives/chunks/collective.h"

namespace weft::collective {

struct Place {
  std::int32_t rank = 0;
  Buffer buffer = Buffer::input;
  std::int32_t index = 0;

  friend auto operator<=>(const Place&, const Place&) = default;
};

struct Move {
  enum class Verb : std::uint8_t { copy, reduce };
  Verb verb = Verb::copy;
  Place from, to;
  std::int32_t count = 1;     // chunks, from both indices on
  std::int32_t channel = -1;  // the requested channel; -1: any

  bool local() const { return from.rank == to.rank; }
  friend bool operator==(const Move&, const Move&) = default;
};

struct Moves {
  std::string name;
  Collective collective;
  // In place, input and output share memory: see Placement in program.h. Moves may then name
  // either.
  bool in_place = false;
  std::vector<std::int32_t> scratch;  // chunks of scratch, per rank
  std::vector<Move> moves;

  friend bool operator==(const Moves&, const Moves&) = default;
};

}  // namespace weft::collective
