// weft/communication/comm/direct/direct_waiting.h -- waiting for words of shared memory that other
// ranks write.
//
// Each operation registers the word it waits for. Any thread of the rank may wait for all of them
// at once, as in transport/doorbell.h: spin, yield, sleep.
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

// First the collectives, kLanes per priority, then the sends, two per priority and peer.
constexpr std::size_t count_operations(std::int32_t ranks) {
  return kPriorities * (kLanes + 2 * static_cast<std::size_t>(ranks));
}

class DirectWaiting {
 public:
  // All awaited words are in `segment`. In a poisoned group nothing waits.
  DirectWaiting(std::byte* segment, const PoisonRecord& poison, transport::Doorbells& bells,
                std::int32_t rank, std::int32_t ranks, bool oversubscribed);

  // Called by the thread that steps operations: operation `index` can progress once `word` is at
  // least `value`.
  void await(std::size_t index, const SharedWord& word, std::uint64_t value);
  void await_nothing(std::size_t index);

  std::uint32_t signal() const { return wakes_.load(std::memory_order_acquire); }
  void wake();
  // Whether to step operations again: an awaited value arrived, the group is poisoned, or wake()
  // was called.
  bool can_go_on(std::uint32_t seen) const;
  // Waits until can_go_on(), at most `limit`.
  void wait(std::uint32_t seen, std::chrono::nanoseconds limit);

 private:
  std::byte* segment_;
  const PoisonRecord& poison_;
  transport::Doorbells& bells_;
  std::int32_t rank_;
  transport::Patience patience_;
  std::atomic<std::uint32_t> wakes_{0};
  // Offset of the word and low half of the value, packed so that a waiting thread reads both at
  // once.
  std::vector<std::atomic<std::uint64_t>> awaited_;
  std::vector<std::atomic<std::uint64_t>>
      blocked_;  // 64 operations each; a bit is set while its operation waits
};

}  // namespace weft::comm
