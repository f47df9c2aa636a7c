#include "weft/transport/shm/neighbours.h"

#include <sys/eventfd.h>

#include <algorithm>
#include <utility>

namespace weft::transport::shm {
namespace {

constexpr std::size_t kLine = 64;
constexpr std::int32_t kFewestSpins = 16;  // under a microsecond

// A row begins a cache line; up to 16 ranks fit one, which a waiting rank then polls alone.
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
      spins_(patience.spins),
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
  Patience patience = patience_;
  patience.spins = spins_.load(std::memory_order_relaxed);
  // With messages posted, as long as yielding lasts: then there is no time left to sleep.
  const bool posted = posts_.load(std::memory_order_relaxed) > 0;
  if (posted) limit = std::min(limit, patience.yields);
  std::int32_t looks = 0;
  const bool changed = wait_until(bells(), rank_, patience, limit, [&] {
    ++looks;
    return signal() != seen;
  });
  const bool spun_in_vain = looks > patience.spins + 1;
  spins_.store(std::clamp(spun_in_vain ? patience.spins / 2 : patience.spins * 2,
                          std::min(kFewestSpins, patience_.spins), patience_.spins),
               std::memory_order_relaxed);
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
