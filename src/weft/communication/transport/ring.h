// weft/communication/transport/ring.h -- a few slots of shared memory between one writer and one reader.
//
//   taken: how many messages the reader has done with            message m lies in slot m % slots
//     |
//   [ 6 ]   [ 8 | header | bytes ... ]  [ 9 | ... ]  [ 6 | ... ]  [ 7 | ... ]
//             a slot holds message m when its number is m + 1
//
// The reader looks at the slot itself, whose first cache line has the number, the header and, next to it,
// the bytes: a message costs one transfer of lines from core to core, none for a counter. The writer looks at
// `taken`, which has a line of its own, and only when the slots it knows to be free are used up.
// All zero is a good initial state.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "weft/base/result.h"
#include "weft/communication/transport/connection.h"

namespace weft::transport {

// Where a message's bytes are. A writer may leave them in its own memory for the reader to fetch:
//
//   posted ──▶ taking ──▶ taken        the reader fetched them, the writer's memory is its own again
//     │          └─────▶ refused ─┐    the reader cannot reach the writer's memory
//     └────▶ filling ◀────────────┘    the writer lost patience and copies
//              └─────▶ stored          in the slot, as without all this
//
enum class SlotState : std::uint32_t { stored, posted, taking, taken, refused, filling, lost };

struct Slot {
  std::atomic<std::uint64_t> number;
  std::uint64_t label;
  std::uint64_t bytes;
  std::uint64_t address;  // in the writer's memory, where posted
  std::atomic<SlotState> state;

  std::byte* data() { return reinterpret_cast<std::byte*>(this) + kDataOffset; }
  static constexpr std::size_t kDataOffset = 64;
};

// Bytes of shared memory for one ring: whole pages, so that its reader can place them. Fails when the
// capacity makes no sense.
Result<std::size_t> ring_bytes(const Capacity& capacity);

class RingWriter {
 public:
  RingWriter(std::byte* memory, const Capacity& capacity);

  // The slot of the next message; nullptr while none is free.
  Slot* next();
  // REQUIRES: next() gave it and it has been filled.
  void publish();

  std::size_t slot_bytes() const { return slot_bytes_; }

 private:
  std::atomic<std::uint64_t>* taken_;
  std::byte* slots_;
  std::size_t stride_, slot_bytes_;
  std::uint32_t count_, index_ = 0;
  std::uint64_t sent_ = 0, free_until_;
};

class RingReader {
 public:
  RingReader(std::byte* memory, const Capacity& capacity);

  // The slot of the next message; nullptr while it is not there.
  Slot* front();
  // Frees it. REQUIRES: front() gave it.
  void release();

  std::size_t slot_bytes() const { return slot_bytes_; }

 private:
  std::atomic<std::uint64_t>* taken_;
  std::byte* slots_;
  std::size_t stride_, slot_bytes_;
  std::uint32_t count_, index_ = 0;
  std::uint64_t done_ = 0;
};

}  // namespace weft::transport
