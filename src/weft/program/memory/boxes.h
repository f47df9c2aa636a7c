// weft/program/memory/boxes.h -- buffers as boxes for the packers, and their independent groups.
//
// Only steps at which a birth is followed by a death matter: at any other step, the live buffers
// are a subset of those at a neighbouring step, so they add no conflict. The remaining steps are
// numbered and called moments. Lifetimes that cover the same moments become equal:
//
//   step    0 1 2 3 4 5 6          moment  0 1
//   a       [-----)                a       [-)         two boxes conflict exactly if they
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
  std::uint32_t buffer = 0;          // its buffer

  std::int32_t width() const { return past - first; }
};

// A group of boxes that conflict with no box outside it, on top of boxes that already have offsets.
struct Piece {
  std::int64_t base = 0;     // the offset of its bottom, in units
  std::int32_t moments = 0;  // its boxes lie in [0, moments)
  std::vector<Box> boxes;
};

// A packing problem split into groups. Sizes and offsets count in `unit` bytes, the greatest common
// divisor of all sizes: since every box rests on others, every offset is a multiple of it.
struct Pieces {
  std::int64_t unit = 1;
  std::vector<Piece> pieces;
  std::vector<std::int64_t> offsets;  // by buffer, in units; not yet set for boxes of the groups
};

// A box that is alive throughout its group conflicts with all others, so it can be placed at the
// bottom without raising the peak. Without it, the group may split further. REQUIRES: buffers and
// alignment that pack() accepts.
Pieces cut_into_pieces(std::span<const Buffer> buffers, std::int64_t alignment);

// The highest top of the boxes at these offsets.
std::int64_t highest_edge(const Piece& piece, std::span<const std::int64_t> offsets);

}  // namespace weft::memory
