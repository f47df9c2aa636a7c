// weft/collectives/chunks/cells.h -- numbers every chunk of memory; aliases share a number.
//
//   all_gather in place, 2 ranks, 2 chunks        output[0] of 1    4
//                                                 output[2] of 1    6
//                                                 input[0]  of 1    6
//
// Passes that track the last access to each chunk keep flat arrays over these numbers.
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

  // The cell of a slot; the chunks after the slot have the following cells.
  std::int32_t at(std::int32_t rank, Slot slot) const { return first(rank, slot.buffer) + slot.index; }
  std::int32_t at(const Place& place) const { return first(place.rank, place.buffer) + place.index; }

  // The canonical name of a slot among its aliases: see resolve() in program.h.
  Slot resolved(std::int32_t rank, Slot slot) const {
    const Window& window = windows_[index(rank, slot.buffer)];
    return {window.buffer, slot.index + window.offset};
  }

 private:
  // A buffer's location: from `offset` on in the buffer that holds its memory.
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

// The number of chunks in each buffer of each rank: as the collective defines it. A custom
// collective's buffers also cover every chunk that the moves touch.
struct Extents {
  std::vector<std::int32_t> input, output;  // per rank
};
Extents extents(const Moves& moves);

}  // namespace weft::collective
