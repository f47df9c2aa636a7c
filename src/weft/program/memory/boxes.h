// weft/program/memory/boxes.h -- buffers as the packers see them, and the independent pieces they fall into.
//
// Only the steps matter at which a birth is followed by a death: every other step has a subset of
// the neighbour's buffers alive, so what does not collide there does not collide here. These steps
// are numbered and called moments. Lives that differ but meet the same moments become equal:
//
//   step    0 1 2 3 4 5 6          moment  0 1
//   a       [-----)                a       [-)         two boxes collide exactly when they
//   b         [-------)            b       [---)       share a moment
//   c               [---)          c         [-)
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "weft/program/memory/pack.h"

namespace weft::memory {

struct Box {
  std::int32_t first = 0, past = 0;  // moments, half-open
  std::int64_t size = 0;             // in units
  std::uint32_t buffer = 0;          // which buffer it is

  std::int32_t width() const { return past - first; }
};

// Boxes that collide with no box outside, resting on what has already been given a place.
struct Piece {
  std::int64_t base = 0;     // the offset of its floor, in units
  std::int32_t moments = 0;  // its boxes lie in [0, moments)
  std::vector<Box> boxes;
};

// A packing problem cut into pieces. Sizes and offsets count in `unit` bytes, the greatest common
// divisor of all sizes: where every box rests on another, every offset is a multiple of it.
struct Pieces {
  std::int64_t unit = 1;
  std::vector<Piece> pieces;
  std::vector<std::int64_t> offsets;  // of each buffer, in units; those of the pieces still to be set
};

// A box alive throughout its piece collides with all others of it, so it may lie at the bottom as
// well as anywhere; without it the rest may fall into smaller pieces. No peak is lost this way.
// REQUIRES: buffers and alignment that pack() accepts.
Pieces cut_into_pieces(std::span<const Buffer> buffers, std::int64_t alignment);

// The highest edge of the boxes at these offsets.
std::int64_t highest_edge(const Piece& piece, std::span<const std::int64_t> offsets);

}  // namespace weft::memory
