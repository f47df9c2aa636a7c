// weft/communication/comm/direct/direct_stream.h -- the calls of one priority, as one rank knows them.
//
// Calls of a stream are done one after another, in the same order on all ranks. A rank reads another's
// counters only when the values it last saw are not enough: a cache line that nobody else reads stays in its
// writer's cache.
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
  std::byte* part = nullptr;  // its part of the stream's memory
  // As last seen.
  std::uint64_t copied_in = 0, combined = 0, taken = 0, finished = 0;
};

// One way to or from another rank, for one send at a time.
struct DirectWire {
  std::uint64_t pieces = 0;  // of the sends that are done
};

// Staged calls use the two halves of the slots in turns. Their pieces are numbered through all calls.
class StagedCalls {
 public:
  struct Numbers {
    std::uint64_t first_piece = 0;
    std::uint64_t half = 0;
    std::uint64_t half_free_at = 0;  // when so many calls are finished by everyone
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

// What is known of reading private buffers through the kernel: see direct_single_copy.cpp.
struct PrivateReading {
  bool agreed = false;  // all ranks know that all can read all
  std::array<DirectTrial, kTrials> trials;
  std::vector<std::byte> fetched;  // of others, what is reduced next; empty before it is needed
};

struct DirectStream {
  std::size_t priority = 0;
  std::vector<DirectPeer> peers;
  RankCounters* mine = nullptr;
  std::uint64_t started = 0, done = 0;  // calls
  std::uint64_t history = 0;
  std::uint64_t all_finished = 0;  // so many calls at least are finished by everyone
  MailboxRing mailbox;
  StagedCalls staged;
  PrivateReading reading;
  std::vector<DirectWire> to, from;
};

// Whether `word` is at least `value`. `seen` is its last known value; where that is enough, `word` is not
// read.
inline bool reached(const SharedWord& word, std::uint64_t& seen, std::uint64_t value) {
  if (seen >= value) return true;
  seen = word.load(std::memory_order_acquire);
  return seen >= value;
}

}  // namespace weft::comm
