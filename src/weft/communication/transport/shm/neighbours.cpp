#include "weft/communication/transport/shm/neighbours.h"

#include <sys/eventfd.h>

#include <algorithm>
#include <utility>

namespace weft::transport::shm {
namespace {

constexpr std::size_t kLine = 64;
// How long a posted message waits to be fetched; then the sender copies it, so that it can
// progress.
constexpr std::chrono::nanoseconds kPosted{50'000};

// A row starts a cache line; up to 16 ranks fit one, so that a waiting rank polls a single line.
std::size_t row_bytes(std::int32_t ranks) {
  return (static_cast<std::size_t>(ranks) * sizeof(std::uint32_t) + kLine - 1) / kLine * kLine;
}

}  // namespace

std::size_t Neighbours::segment_bytes(std::int32_t ranks) {
  return sizeof(Doorbells) + static_cast<std::size_t>(ranks) * row_bytes(ranks);
}

Neighbours::Neighbours(Segment segment, std::int32_t rank, std::int32_t ranks, const Patience& patience,
                       PeerMemory memory, std::int64_t single_copy_bytes)
    : segment_(std::move(segment)),
      rank_(rank),
      ranks_(ranks),
      patience_(patience),
      memory_(std::move(memory)),
      single_copy_bytes_(single_copy_bytes) {
  WEFT_CHECK(segment_.size() >= segment_bytes(ranks) && rank >= 0 && rank < ranks);
  bells().enter();
}

std::atomic<std::uint32_t>& Neighbours::news(std::int32_t of, std::int32_t from) const {
  std::byte* const row =
      segment_.data() + sizeof(Doorbells) + static_cast<std::size_t>(of) * row_bytes(ranks_);
  return reinterpret_cast<std::atomic<std::uint32_t>*>(row)[from];
}

void Neighbours::tell(std::int32_t peer) {
  // Added, not stored: several threads of this rank may drive connections to that peer.
  news(peer, rank_).fetch_add(1, std::memory_order_release);
  if (bells().ring(peer) && !other_bells_.empty())
    ::eventfd_write(other_bells_[static_cast<std::size_t>(peer)].descriptor(), 1);
}

std::uint32_t Neighbours::signal() const {
  std::uint32_t sum = 0;
  for (std::int32_t from = 0; from < ranks_; ++from) sum += news(rank_, from).load(std::memory_order_acquire);
  return sum;
}

void Neighbours::wait(std::uint32_t seen, std::chrono::nanoseconds limit) {
  const bool posted = posts_.load(std::memory_order_relaxed) > 0;
  if (posted) limit = std::min(limit, kPosted);
  const bool changed = wait_until(bells(), rank_, patience_, limit, [&] { return signal() != seen; });
  if (changed || !posted) return;
  recalls_.fetch_add(1, std::memory_order_relaxed);
  tell(rank_);
}

void Neighbours::report(WireFault fault) {
  {
    const std::lock_guard lock(fault_mutex_);
    if (!fault_) fault_ = std::move(fault);
  }
  has_fault_.store(true, std::memory_order_release);
  tell(rank_);
}

std::optional<WireFault> Neighbours::fault() const {
  if (!has_fault_.load(std::memory_order_acquire)) return std::nullopt;
  const std::lock_guard lock(fault_mutex_);
  return fault_;
}

}  // namespace weft::transport::shm
