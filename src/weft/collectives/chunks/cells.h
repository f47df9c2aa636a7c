// weft/collectives/chunks/cells.h -- one number for every chunk of memory, the same for all names of a chunk.
//
//   all_gather in place, 2 ranks, 2 chunks        output[0] of 1    4
//                                                 output[2] of 1    6
//                                                 input[0]  of 1    6
//
// Passes that ask who touched a chunk last keep flat arrays over these numbers.
#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "weft/collectives/chunks/moves.h"
#include "weft/collectives/chunks/program.h"

namespace weft::collective {

class Cells {
 public:
  // REQUIRES: check_moves(moves).ok()
  explicit Cells(const Moves& moves);
  Cells(const Collective& collective, Placement placement, const std::vector<std::int32_t>& scratch,
        const std::vector<std::int32_t>& input, const std::vector<std::int32_t>& output);

  std::int32_t size() const { return size_; }

  // The first of the cells that a slot stands for; those of the chunks after it follow.
  std::int32_t at(std::int32_t rank, Slot slot) const { return first(rank, slot.buffer) + slot.index; }
  std::int32_t at(const Place& place) const { return first(place.rank, place.buffer) + place.index; }

  // The name of a slot that all its other names come down to: see resolve() in program.h.
  Slot resolved(std::int32_t rank, Slot slot) const {
    const Window& window = windows_[index(rank, slot.buffer)];
    return {window.buffer, slot.index + window.offset};
  }

 private:
  // Where a buffer lies: from `offset` on in the one that holds its memory.
  struct Window {
    Buffer buffer = Buffer::input;
    std::int32_t offset = 0;
    std::int32_t first = 0;
  };
  static std::size_t index(std::int32_t rank, Buffer buffer) {
    return static_cast<std::size_t>(rank) * 3 + static_cast<std::size_t>(buffer);
  }
  std::int32_t first(std::int32_t rank, Buffer buffer) const { return windows_[index(rank, buffer)].first; }

  std::vector<Window> windows_;
  std::int32_t size_ = 0;
};

// How many chunks each buffer of each rank has: what the collective says and, for a custom one, what
// the moves touch beyond what it promises.
struct Extents {
  std::vector<std::int32_t> input, output;  // one a rank
};
Extents extents(const Moves& moves);

}  // namespace weft::collective
