#include "weft/communication/transport/doorbell.h"

#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <ctime>

#include "weft/base/machine.h"
#include "weft/communication/transport/scheduler_group.h"

namespace weft::transport {
namespace {

static_assert(std::atomic<std::uint32_t>::is_always_lock_free && sizeof(std::atomic<std::uint32_t>) == 4);
static_assert(std::atomic<std::uint16_t>::is_always_lock_free);

// Longer sleeps are cut short: the caller checks again and continues to sleep.
constexpr std::chrono::seconds kLongestSleep{3600};

// Ranks that share a core yield it back sooner than this, since they wait too.
constexpr std::chrono::microseconds kLongYield{1000};
// One long yield per this interval costs a few percent.
constexpr std::chrono::milliseconds kAsleepAfterLongYield{100};
std::atomic<std::int64_t> asleep_until{0};  // steady-clock time

// Not FUTEX_PRIVATE: the word is shared among processes.
long futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value, const timespec* limit) {
  return syscall(SYS_futex, &word, operation, value, limit, nullptr, 0);
}

}  // namespace

bool register_for_process_barriers() {
  return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0;
}

void barrier_on_all_processors() { syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0); }

Patience patience_for(std::int32_t ranks) {
  Patience patience;
  // A spinning rank would occupy a core that the awaited rank may need.
  if (ranks > available_processors()) patience.spins = 0;
  return patience;
}

void yield_core() {
  const auto begin = std::chrono::steady_clock::now();
  sched_yield();
  const auto end = std::chrono::steady_clock::now();
  note_yield(end - begin, end);
}

void note_yield(std::chrono::nanoseconds took, std::chrono::steady_clock::time_point end) {
  if (took >= kLongYield)
    asleep_until.store((end + kAsleepAfterLongYield).time_since_epoch().count(), std::memory_order_relaxed);
}

bool yields_return(std::chrono::steady_clock::time_point now) {
  return now.time_since_epoch().count() >= asleep_until.load(std::memory_order_relaxed);
}

void Doorbells::enter(std::int32_t ranks) {
  if (!kProcessBarriers || ranks > kMostBarrierRanks) fences_needed_.store(1);
  const std::uint64_t mine = scheduler_group();
  std::uint64_t first = 0;
  if (!scheduler_group_.compare_exchange_strong(first, mine) && first != mine) split_.store(1);
}

bool Doorbells::wake(std::int32_t rank) {
  const std::uint16_t before = sleepers_[rank].fetch_or(kWoken, std::memory_order_acq_rel);
  if ((before & kWoken) != 0) return false;
  // Release: a thread that reads the new count also sees the change that caused the ring.
  bells_[rank].count.fetch_add(1, std::memory_order_release);
  futex(bells_[rank].count, FUTEX_WAKE, INT_MAX, nullptr);
  return true;
}

void Doorbells::fence() {
#if defined(__GNUC__) && !defined(__clang__) && defined(__SANITIZE_THREAD__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wtsan"  // the fence is correct; the sanitizer just does not model it
#endif
  std::atomic_thread_fence(std::memory_order_seq_cst);
#if defined(__GNUC__) && !defined(__clang__) && defined(__SANITIZE_THREAD__)
#pragma GCC diagnostic pop
#endif
}

void Doorbells::fence_against_ringers() const {
  fence();
  if (!fences_needed()) barrier_on_all_processors();
}

std::uint32_t Doorbells::prepare(std::int32_t rank) {
  // Read before this sleeper is counted: a ringer that finds it changes the bell, and sleep()
  // returns at once.
  const std::uint32_t seen = read(rank);
  std::uint16_t others = sleepers_[rank].load(std::memory_order_relaxed);
  while (!sleepers_[rank].compare_exchange_weak(others, static_cast<std::uint16_t>((others & ~kWoken) + 1),
                                                std::memory_order_acq_rel, std::memory_order_relaxed)) {
  }
  fence_against_ringers();
  return seen;
}

void Doorbells::sleep(std::int32_t rank, std::uint32_t seen, std::chrono::nanoseconds limit) {
  if (limit.count() <= 0) return;
  const auto nanoseconds = std::min<std::chrono::nanoseconds>(limit, kLongestSleep).count();
  const timespec relative{static_cast<time_t>(nanoseconds / 1'000'000'000),
                          static_cast<long>(nanoseconds % 1'000'000'000)};
  // Signals, the timeout and a changed bell all end it: the caller checks again in each case.
  futex(bells_[rank].count, FUTEX_WAIT, seen, &relative);
}

void Doorbells::finish(std::int32_t rank) {
  std::uint16_t before = sleepers_[rank].load(std::memory_order_relaxed);
  const auto after = [&] {  // clear kWoken with the last sleeper
    return static_cast<std::uint16_t>((before & ~kWoken) == 1 ? 0 : before - 1);
  };
  while (!sleepers_[rank].compare_exchange_weak(before, after(), std::memory_order_acq_rel,
                                                std::memory_order_relaxed)) {
  }
}

}  // namespace weft::transport
