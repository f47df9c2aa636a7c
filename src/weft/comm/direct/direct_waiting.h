// weft/comm/direct/direct_waiting.h -- how a rank waits for words of shared memory that others write.
//
//   spin ──▶ yield once ──▶ yield for a while ──▶ sleep          until a word is at least a value
//
// Where spinning was in vain lately, the awaited rank may need this very core: then a wait spins a little
// only. (2 ranks and a busy process on 2 cores: 15 times as fast.) Where a yield gives the core to a foreign
// process, waits sleep instead (foreign_load.h). On oversubscribed cores a wait yields at once.
//
// Operations say what they wait for; any thread of the rank may wait for all of them at once.
#pragma once
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "weft/comm/direct/direct.h"
#include "weft/comm/direct/direct_layout.h"
#include "weft/comm/foreign_load.h"
#include "weft/transport/doorbell.h"

namespace weft::comm {

inline constexpr std::size_t kOperations = kPriorities * kLanes * 2;  // collectives, then sends

class DirectWaiting {
 public:
  // `segment` is what all awaited words lie in. A poisoned group waits for nothing.
  DirectWaiting(std::byte* segment, const PoisonRecord& poison, transport::Doorbells& bells,
                std::int32_t rank, std::int32_t ranks, bool oversubscribed);

  // By the thread that steps operations: operation `index` goes on when `word` is at least `value`.
  void await(std::size_t index, const SharedWord& word, std::uint64_t value);
  void await_nothing(std::size_t index);

  std::uint32_t signal() const { return wakes_.load(std::memory_order_acquire); }
  void wake();
  // Whether it is worth looking up again: an awaited word came, the group is poisoned, or somebody woke us.
  bool can_go_on(std::uint32_t seen) const;
  // The first part of a wait, which takes no system call. False: go on with rest().
  bool spin(std::uint32_t seen);
  void rest(std::uint32_t seen, std::chrono::nanoseconds most);

 private:
  bool yield_once(std::uint32_t seen);

  std::byte* segment_;
  const PoisonRecord& poison_;
  transport::Doorbells& bells_;
  std::int32_t rank_;
  bool oversubscribed_;
  transport::Patience patience_;
  ForeignLoad foreign_load_;
  std::atomic<std::uint32_t> wakes_{0};
  std::atomic<std::uint32_t> vain_spins_{0};  // in a row
  // The word's place and the value's low half in one word, so that a waiting thread reads both at once.
  std::array<std::atomic<std::uint64_t>, kOperations> awaited_ = {};
  std::atomic<std::uint32_t> blocked_{0};  // bit i: operation i waits
};

}  // namespace weft::comm
