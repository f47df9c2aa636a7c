#include "weft/comm/direct/direct_waiting.h"

#include <bit>

#include "weft/base/machine.h"

namespace weft::comm {
namespace {

// Longer than any running rank takes over a piece: a rank that yields its core to a foreign process gets it
// back a whole turn later.
constexpr std::chrono::microseconds kMostSpinning{40};
constexpr std::int32_t kSpinsBetweenLooks = 64;  // at the clock
// Where spinning is in vain, so few; the whole time is tried again every so many waits.
constexpr std::int32_t kFewSpins = 2;
constexpr std::uint32_t kWaitsBetweenTries = 32;

// Values never differ by 2^31, so their low halves tell which is larger.
constexpr std::uint64_t pack_awaited(std::size_t offset, std::uint64_t value) {
  return static_cast<std::uint64_t>(offset / sizeof(SharedWord)) << 32 | static_cast<std::uint32_t>(value);
}

template <class Ready>
bool spin_for(std::chrono::nanoseconds time, Ready ready) {
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

}  // namespace

DirectWaiting::DirectWaiting(std::byte* segment, const PoisonRecord& poison, transport::Doorbells& bells,
                             std::int32_t rank, std::int32_t ranks, bool oversubscribed)
    : segment_(segment),
      poison_(poison),
      bells_(bells),
      rank_(rank),
      oversubscribed_(oversubscribed),
      patience_(transport::patience_for(ranks)) {
  patience_.spins = 0;  // spin() does that
}

void DirectWaiting::await(std::size_t index, const SharedWord& word, std::uint64_t value) {
  const auto offset = static_cast<std::size_t>(reinterpret_cast<const std::byte*>(&word) - segment_);
  awaited_[index].store(pack_awaited(offset, value), std::memory_order_relaxed);
  blocked_.store(blocked_.load(std::memory_order_relaxed) | 1u << index, std::memory_order_relaxed);
}

void DirectWaiting::await_nothing(std::size_t index) {
  const std::uint32_t blocked = blocked_.load(std::memory_order_relaxed);
  if ((blocked >> index & 1) != 0) blocked_.store(blocked & ~(1u << index), std::memory_order_relaxed);
}

void DirectWaiting::wake() {
  wakes_.fetch_add(1, std::memory_order_release);
  bells_.ring(rank_);
}

bool DirectWaiting::can_go_on(std::uint32_t seen) const {
  if (signal() != seen || poison_.cause.load(std::memory_order_acquire) != 0) return true;
  for (std::uint32_t left = blocked_.load(std::memory_order_relaxed); left != 0; left &= left - 1) {
    const std::uint64_t awaited =
        awaited_[static_cast<std::size_t>(std::countr_zero(left))].load(std::memory_order_relaxed);
    const auto& word = *reinterpret_cast<const SharedWord*>(segment_ + (awaited >> 32) * sizeof(SharedWord));
    const auto now = static_cast<std::uint32_t>(word.load(std::memory_order_acquire));
    if (static_cast<std::int32_t>(now - static_cast<std::uint32_t>(awaited)) >= 0) return true;
  }
  return false;
}

bool DirectWaiting::spin(std::uint32_t seen) {
  const auto ready = [&] { return can_go_on(seen); };
  if (oversubscribed_) return ready();
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

// Tells `foreign_load_` how long that took.
bool DirectWaiting::yield_once(std::uint32_t seen) {
  const auto begin = ForeignLoad::Clock::now();
  const bool suspects = foreign_load_.suspects(begin);
  const std::int64_t switches = suspects ? context_switches() : 0;
  transport::yield_core();
  foreign_load_.note(begin, ForeignLoad::Clock::now(), suspects && context_switches() != switches);
  return can_go_on(seen);
}

void DirectWaiting::rest(std::uint32_t seen, std::chrono::nanoseconds most) {
  transport::Patience how = patience_;
  if (foreign_load_.sleeps())
    how.yields = {};
  else if (!oversubscribed_ && yield_once(seen))
    return;  // oversubscribed, a core that is yielded mostly goes to another rank
  transport::wait_until(bells_, rank_, how, most, [&] { return can_go_on(seen); });
}

}  // namespace weft::comm
