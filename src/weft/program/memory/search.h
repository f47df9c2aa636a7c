// weft/program/memory/search.h -- the exact packer.
//
// Finds a packing below a height or proves that there is none. It picks the moment with the fewest
// answers to "which box is on the floor?" (see frontier.h) and tries the answers in turn. If no
// space may be wasted, there is often at most one. Every packing in which each box is as low as
// possible gives one answer to each question, so none is visited twice. Once no box connects two
// sides, each side is solved separately: a failure on one never causes backtracking in the other.
//
// Rising floors and several orders follow Moffitt, "MiniMalloc: A Lightweight Memory Allocator for
// Hardware-Accelerated Machine Learning", ASPLOS'23; the questions are new.
#pragma once
#include <cstdint>
#include <vector>

#include "weft/program/memory/boxes.h"

namespace weft::memory {

enum class Verdict : std::uint8_t { found, impossible, out_of_effort };

struct Outcome {
  Verdict verdict = Verdict::out_of_effort;
  std::vector<std::int64_t> offsets;  // if found: by box, above the group's base, in units
  std::int64_t effort = 0;            // decisions made
};

// Tries several orders of preference in turn, each time with a larger limit, until a packing is
// found, an order has been searched completely, or `effort` decisions are spent.
Outcome search(const Piece& piece, std::int64_t height, std::int64_t effort);

}  // namespace weft::memory
