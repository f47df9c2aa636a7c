// weft/communication/comm/direct/direct_waiting.h -- how a rank waits for words of shared memory that others write.
//
// Operations say what they wait for; any thread of the rank may wait for all of them at once, as
// transport/doorbell.h says: spin, yield, sleep.
#pragma once
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "weft/communication/comm/direct/direct.h"
#include "weft/communication/comm/direct/direct_layout.h"
#include "weft/communication/transport/doorbell.h"

namespace weft::comm {

// Those of collectives, kLanes per priority, then those of sends: two per priority and other rank.
constexpr std::size_t count_operations(std::int32_t ranks) {
  return kPriorities * (kLanes + 2 * static_cast<std::size_t>(ranks));
}

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
  // Until then, at most `limit`.
  void wait(std::uint32_t seen, std::chrono::nanoseconds limit);

 private:
  std::byte* segment_;
  const PoisonRecord& poison_;
  transport::Doorbells& bells_;
  std::int32_t rank_;
  transport::Patience patience_;
  std::atomic<std::uint32_t> wakes_{0};
  // The word's place and the value's low half in one word, so that a waiting thread reads both at once.
  std::vector<std::atomic<std::uint64_t>> awaited_;
  std::vector<std::atomic<std::uint64_t>>
      blocked_;  // 64 operations each: a bit is set while its operation waits
};

}  // namespace weft::comm
