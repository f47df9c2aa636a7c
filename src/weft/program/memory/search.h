// weft/program/memory/search.h -- the exact packer: finds a packing below a height or proves that no packing fits.
//
// It asks, of the moment with the fewest answers, what lies on its floor (see frontier.h), and tries
// the answers in turn. Where no space may be wasted there is often but one, or none. Every packing in
// which each box lies as low as it can gives one answer to each question, so none is met twice. When
// no box connects two sides any more, each is solved by itself: a failure on one never makes the
// search reconsider the other.
//
// That floors only rise, and that several orders are tried, follows Moffitt, "MiniMalloc: A
// Lightweight Memory Allocator for Hardware-Accelerated Machine Learning", ASPLOS'23; the questions
// are our own.
#pragma once
#include <cstdint>
#include <vector>

#include "weft/program/memory/boxes.h"

namespace weft::memory {

enum class Verdict : std::uint8_t { found, impossible, out_of_effort };

struct Outcome {
  Verdict verdict = Verdict::out_of_effort;
  std::vector<std::int64_t> offsets;  // when found: of each box above the piece's base, in units
  std::int64_t effort = 0;            // decisions taken
};

// Searches under several orders of preference in turn, each with more patience than the last, until
// one finds a packing, one has seen all there is to see, or `effort` decisions are spent.
Outcome search(const Piece& piece, std::int64_t height, std::int64_t effort);

}  // namespace weft::memory
