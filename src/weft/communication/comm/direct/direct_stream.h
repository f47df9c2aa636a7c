// weft/communication/comm/direct/direct_stream.h -- one rank's state of a stream: the calls of one
// priority.
//
// Calls of a stream execute one after another, in the same order on all ranks. A rank reads
// another's counters only if the cached values do not suffice: a cache line that no other core
// reads stays in its writer's cache.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "weft/communication/comm/direct/direct_layout.h"
#include "weft/communication/comm/direct/direct_mailbox_ring.h"
#include "weft/communication/comm/direct/direct_trial.h"

namespace weft::comm {

struct DirectPeer {
  std::byte* part = nullptr;  // the peer's memory in the stream
  // Last known values.
  std::uint64_t copied_in = 0, combined = 0, taken = 0, finished = 0;
};

// A connection to or from another rank, for one send at a time.
struct DirectWire {
  std::uint64_t pieces = 0;  // of completed sends
};

// Staged calls alternate between the two halves of the slots. Fragments are numbered across all
// calls.
class StagedCalls {
 public:
  struct Numbers {
    std::uint64_t first_piece = 0;
    std::uint64_t half = 0;
    std::uint64_t half_free_at = 0;  // free once all ranks have finished this many calls
  };
  Numbers add(std::uint64_t pieces, std::uint64_t sequence) {
    const std::uint64_t half = calls_++ % 2;
    const Numbers numbers{pieces_, half, half_free_at_[half]};
    pieces_ += pieces;
    half_free_at_[half] = sequence + 1;
    return numbers;
  }
  std::uint64_t calls() const { return calls_; }

 private:
  std::uint64_t calls_ = 0, pieces_ = 0;
  std::array<std::uint64_t, 2> half_free_at_ = {};
};

// State of reading private buffers through the OS kernel: see direct_single_copy.cpp.
struct PrivateReading {
  bool agreed = false;  // all ranks know that all can read all memory
  std::array<DirectTrial, kTrials> trials;
  std::vector<std::byte> fetched;  // peer data to be reduced next; empty until needed
};

struct DirectStream {
  std::size_t priority = 0;
  std::vector<DirectPeer> peers;
  RankCounters* mine = nullptr;
  std::uint64_t started = 0, done = 0;  // calls
  std::uint64_t history = 0;
  std::uint64_t all_finished = 0;  // lower bound: calls that all ranks have finished
  MailboxRing mailbox;
  StagedCalls staged;
  PrivateReading reading;
  std::vector<DirectWire> to, from;
};

// Whether `word` is at least `value`. `seen` caches its last known value; `word` is read only if
// that does not suffice.
inline bool reached(const SharedWord& word, std::uint64_t& seen, std::uint64_t value) {
  if (seen >= value) return true;
  seen = word.load(std::memory_order_acquire);
  return seen >= value;
}

}  // namespace weft::comm
