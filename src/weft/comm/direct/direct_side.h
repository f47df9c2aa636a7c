// weft/comm/direct/direct_side.h -- one rank's side of a direct group: what it knows of the others.
//
// A rank reads another's counters only when the values it last saw are not enough: a cache line that nobody
// else reads stays in its writer's cache.
#pragma once
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "weft/base/machine.h"
#include "weft/comm/direct/direct.h"
#include "weft/comm/direct/direct_layout.h"
#include "weft/comm/direct/direct_trial.h"
#include "weft/comm/foreign_load.h"
#include "weft/transport/doorbell.h"
#include "weft/transport/peer_memory.h"
#include "weft/transport/segment.h"
#include "weft/transport/thread_placement.h"

namespace weft::comm {

struct DirectPeer {
  std::byte* part = nullptr;  // its part of the stream's memory
  // As last seen.
  std::uint64_t copied_in = 0, combined = 0, taken = 0, finished = 0;
};

// One way to or from another rank: sends on it are done in the order in which they were started.
struct DirectWire {
  std::uint64_t started = 0, done = 0;  // sends
  std::uint64_t pieces = 0;             // of the sends that are done
};

struct DirectStream {
  std::size_t priority = 0;
  std::vector<DirectPeer> peers;
  RankCounters* mine = nullptr;
  std::uint64_t started = 0, done = 0;  // calls
  std::uint64_t history = 0;
  std::uint64_t all_finished = 0;  // so many calls at least are finished by everyone
  // This rank's mailbox, in bytes since the beginning: where the next entry goes, where that of each call
  // began, and the oldest call whose entry is not yet written over.
  std::uint64_t mailbox_end = 0, oldest_entry = 0;
  std::array<std::uint64_t, kPlaces> entry_begins = {};
  std::uint64_t pieces = 0;                        // of all staged calls so far
  std::uint64_t staged = 0;                        // calls; each takes the half that the one before did not
  std::array<std::uint64_t, 2> half_free_at = {};  // when so many calls are finished by everyone
  std::vector<DirectWire> to, from;
  bool readable = false;  // all ranks can read all others' memory through the kernel
  std::array<DirectTrial, kTrials> trials;
  std::vector<std::byte> fetched;  // of others, what is reduced next; empty before it is needed
};

// What an operation waits for: that a word of the segment is at least a value. The word's place and the value's
// low half are packed into one word, so that a waiting thread reads both at once. (Values never differ by
// 2^31.)
constexpr std::uint64_t pack_awaited(std::size_t offset, std::uint64_t value) {
  return static_cast<std::uint64_t>(offset / sizeof(SharedWord)) << 32 | static_cast<std::uint32_t>(value);
}

inline constexpr std::size_t kOperations = kPriorities * kLanes * 2;  // collectives, then sends

class DirectSide {
 public:
  DirectSide(transport::Segment memory, std::int32_t own_rank, std::int32_t all_ranks,
             const DirectTuning& how, bool threads);

  bool poisoned() const { return poison_record().cause.load(std::memory_order_acquire) != 0; }
  PoisonRecord& poison_record() const { return layout.poison(base); }
  // Unless another fault came first.
  void poison(const DirectGroup::Poison& cause);
  void ring_others() { bells.ring_others(ranks, rank); }

  // Where in this rank's heaps an address lies.
  std::optional<DirectGroup::Place> find(const void* address, std::size_t bytes) const;
  // The address here of a place in a heap of `owner`; null where that heap is not known.
  std::byte* reach(std::int32_t owner, std::int32_t heap, std::uint64_t offset) const;

  // Whether every rank can read every other's memory through the kernel. Each rank finds out at the first call
  // that asks; until all ranks have, the answer is no.
  bool can_read_memory();
  bool read_memory(std::int32_t owner, const std::byte* from, std::span<std::byte> target) const {
    return memory_.read(owner, reinterpret_cast<std::uintptr_t>(from), target);
  }

  bool write_memory(std::int32_t owner, const std::byte* to, std::span<const std::byte> source) const {
    return memory_.write(owner, reinterpret_cast<std::uintptr_t>(to), source);
  }

  // Spins, unless that was in vain lately: the awaited rank may need this very core.
  template <class Ready>
  bool spin_until(Ready ready);

  // Yields once, and tells `foreign_load` how long that took.
  template <class Ready>
  bool yield_until(Ready ready);

  // On oversubscribed cores, while no rank on this core has anything to do: yielding would not help.
  template <class Ready>
  bool spin_for_other_cores(Ready ready);

  // Tells the others now and then which core this rank runs on; answers whether it did.
  bool note_processor();
  // Whether another rank was on this rank's core when it last said so. Tells the others too.
  bool shares_core(std::int32_t other) const;
  // Moves the calling thread to a core with fewer ranks, where the caller asked for that and it is due.
  void place_thread();

  // Whether something happened that a blocked operation waits for.
  bool can_go_on() const;
  void await(std::size_t operation, const SharedWord& word, std::uint64_t value);
  void await_nothing(std::size_t operation);

  transport::Segment segment;
  std::byte* base;
  std::int32_t rank, ranks;
  DirectTuning tuning;
  DirectLayout layout;
  bool one_process;
  bool oversubscribed;  // more ranks than cores
  transport::Patience patience;
  ForeignLoad foreign_load;
  transport::Doorbells& bells;
  std::array<DirectStream, kPriorities> streams;
  std::vector<std::vector<transport::Segment>> heaps;  // [rank][number]
  std::atomic<std::uint32_t> wakes{0};
  std::atomic<bool> core_is_idle{false};  // ranks that share it have done their part of what this one waits for

 private:
  // Longer than any running rank takes over a piece: a rank that yields its core to a foreign process gets it
  // back a whole turn later. Where spinning is in vain, it is tried again every kWaitsBetweenTries waits.
  static constexpr std::chrono::microseconds kMostSpinning{40};
  static constexpr std::int32_t kSpinsBetweenLooks = 64, kFewSpins = 2;  // at the clock
  // What the ranks of another core take together for a small call.
  static constexpr std::chrono::microseconds kOthersTurns{10};
  static constexpr std::uint32_t kWaitsBetweenTries = 32;

  static constexpr std::uint32_t kWaitsBetweenNotes = 16;

  template <class Ready>
  bool spin_for(std::chrono::nanoseconds time, Ready ready);
  // The core that this rank runs on, as it tells the others; -1 where that is not known.
  int processor() const;

  transport::PeerMemory memory_;
  bool all_read_ = false;
  std::atomic<std::uint32_t> waits_{0};
  std::mutex placing_;                                   // of the next
  std::optional<transport::ThreadPlacement> placement_;  // none: no thread is placed
  std::atomic<std::uint32_t> vain_spins_{0};             // in a row
  std::array<std::atomic<std::uint64_t>, kOperations> awaited_ = {};
  // Bit i: operation i waits. Only the thread that steps operations changes it.
  std::atomic<std::uint32_t> blocked_{0};
};

template <class Ready>
bool DirectSide::spin_for(std::chrono::nanoseconds time, Ready ready) {
  std::chrono::steady_clock::time_point begin;
  for (std::int32_t spin = 0; !ready(); ++spin) {
    if (spin == kSpinsBetweenLooks) begin = std::chrono::steady_clock::now();
    if (spin > kSpinsBetweenLooks && spin % kSpinsBetweenLooks == 0 &&
        std::chrono::steady_clock::now() - begin > time)
      return false;
    transport::spin_pause();
  }
  return true;
}

template <class Ready>
bool DirectSide::spin_until(Ready ready) {
  if (oversubscribed) return ready();
  const std::uint32_t vain = vain_spins_.load(std::memory_order_relaxed);
  bool over = ready();
  if (vain >= 2 && vain % kWaitsBetweenTries != 0) {
    for (std::int32_t spin = 0; spin < kFewSpins && !over; ++spin) {
      transport::spin_pause();
      over = ready();
    }
  } else if (!over) {
    over = spin_for(kMostSpinning, ready);
  }
  if (!over)
    vain_spins_.store(vain + 1, std::memory_order_relaxed);
  else if (vain != 0)
    vain_spins_.store(0, std::memory_order_relaxed);
  return over;
}

template <class Ready>
bool DirectSide::spin_for_other_cores(Ready ready) {
  return spin_for(kOthersTurns, ready);
}

template <class Ready>
bool DirectSide::yield_until(Ready ready) {
  const auto begin = ForeignLoad::Clock::now();
  const bool suspects = foreign_load.suspects(begin);
  const std::int64_t switches = suspects ? context_switches() : 0;
  transport::yield_core();
  const auto end = ForeignLoad::Clock::now();
  foreign_load.note(begin, end, suspects && context_switches() != switches);
  return ready();
}

inline bool DirectSide::note_processor() {
  const std::uint32_t waits = waits_.load(std::memory_order_relaxed);
  waits_.store(waits + 1, std::memory_order_relaxed);
  if (waits % kWaitsBetweenNotes != 0) return false;
  processor();
  return true;
}

// Whether `word` is at least `value`. `seen` is its last known value; where that is enough, `word` is not read.
inline bool reached(const SharedWord& word, std::uint64_t& seen, std::uint64_t value) {
  if (seen >= value) return true;
  seen = word.load(std::memory_order_acquire);
  return seen >= value;
}

}  // namespace weft::comm
