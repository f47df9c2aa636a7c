#include "weft/communication/comm/direct/direct_waiting.h"

#include <bit>

namespace weft::comm {
namespace {

// Values never differ by 2^31 or more, so comparing their low halves suffices.
constexpr std::uint64_t pack_awaited(std::size_t offset, std::uint64_t value) {
  return static_cast<std::uint64_t>(offset / sizeof(SharedWord)) << 32 | static_cast<std::uint32_t>(value);
}

}  // namespace

DirectWaiting::DirectWaiting(std::byte* segment, const PoisonRecord& poison, transport::Doorbells& bells,
                             std::int32_t rank, std::int32_t ranks, bool oversubscribed)
    : segment_(segment),
      poison_(poison),
      bells_(bells),
      rank_(rank),
      awaited_(count_operations(ranks)),
      blocked_((count_operations(ranks) + 63) / 64) {
  if (oversubscribed) patience_.spins = 0;
}

void DirectWaiting::await(std::size_t index, const SharedWord& word, std::uint64_t value) {
  const auto offset = static_cast<std::size_t>(reinterpret_cast<const std::byte*>(&word) - segment_);
  awaited_[index].store(pack_awaited(offset, value), std::memory_order_relaxed);
  std::atomic<std::uint64_t>& blocked = blocked_[index / 64];
  blocked.store(blocked.load(std::memory_order_relaxed) | std::uint64_t{1} << index % 64,
                std::memory_order_relaxed);
}

void DirectWaiting::await_nothing(std::size_t index) {
  std::atomic<std::uint64_t>& word = blocked_[index / 64];
  const std::uint64_t blocked = word.load(std::memory_order_relaxed), bit = std::uint64_t{1} << index % 64;
  if ((blocked & bit) != 0) word.store(blocked & ~bit, std::memory_order_relaxed);
}

void DirectWaiting::wake() {
  wakes_.fetch_add(1, std::memory_order_release);
  bells_.ring(rank_);
}

bool DirectWaiting::can_go_on(std::uint32_t seen) const {
  if (signal() != seen || poison_.cause.load(std::memory_order_acquire) != 0) return true;
  for (std::size_t first = 0; first < awaited_.size(); first += 64) {
    for (std::uint64_t left = blocked_[first / 64].load(std::memory_order_relaxed); left != 0;
         left &= left - 1) {
      const std::uint64_t awaited =
          awaited_[first + static_cast<std::size_t>(std::countr_zero(left))].load(std::memory_order_relaxed);
      const auto& word =
          *reinterpret_cast<const SharedWord*>(segment_ + (awaited >> 32) * sizeof(SharedWord));
      const auto now = static_cast<std::uint32_t>(word.load(std::memory_order_acquire));
      if (static_cast<std::int32_t>(now - static_cast<std::uint32_t>(awaited)) >= 0) return true;
    }
  }
  return false;
}

void DirectWaiting::wait(std::uint32_t seen, std::chrono::nanoseconds limit) {
  transport::wait_until(bells_, rank_, patience_, limit, [&] { return can_go_on(seen); });
}

}  // namespace weft::comm
