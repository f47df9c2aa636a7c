// weft/communication/transport/ring.h -- single-producer single-consumer ring of slots in shared
// memory.
//
//   taken: how many messages the reader has consumed            message m is stored in slot m % slots
//     |
//   [ 6 ]   [ 8 | header | bytes ... ]  [ 9 | ... ]  [ 6 | ... ]  [ 7 | ... ]
//             a slot holds message m when its number is m + 1
//
// The reader polls the slot itself, whose first cache line has the number, the header and the first
// bytes. A message thus costs one transfer of its lines between cores, and none for a counter. The
// writer reads `taken`, which has a separate line, only when the slots it knows to be free are used
// up. All zero is a valid initial state.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "weft/base/result.h"
#include "weft/communication/transport/connection.h"

namespace weft::transport {

// Where a message's bytes are. A writer may leave them in its own memory for the reader to fetch:
//
//   posted ──▶ taking ──▶ taken        the reader fetched them; the writer may reuse its memory
//     │          └─────▶ refused ─┐    the reader cannot read the writer's memory
//     └────▶ filling ◀────────────┘    the writer timed out and copies
//              └─────▶ stored          in the slot, as in the plain protocol
//
enum class SlotState : std::uint32_t { stored, posted, taking, taken, refused, filling, lost };

struct Slot {
  std::atomic<std::uint64_t> number;
  std::uint64_t label;
  std::uint64_t bytes;
  std::uint64_t address;  // in the writer's memory, if posted
  std::atomic<SlotState> state;

  std::byte* data() { return reinterpret_cast<std::byte*>(this) + kDataOffset; }
  static constexpr std::size_t kDataOffset = 64;
};

// Bytes of shared memory for one ring: whole pages, so that its reader can choose their NUMA node.
// Fails if the capacity is invalid.
Result<std::size_t> ring_bytes(const Capacity& capacity);

class RingWriter {
 public:
  RingWriter(std::byte* memory, const Capacity& capacity);

  // The slot for the next message; nullptr while none is free.
  Slot* next();
  // REQUIRES: next() returned the slot and it has been filled.
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

  // The slot of the next message; nullptr until it arrives.
  Slot* front();
  // Frees the slot. REQUIRES: front() returned it.
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
