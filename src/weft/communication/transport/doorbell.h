// weft/communication/transport/doorbell.h -- how ranks of one machine wait for each other and
// release their cores.
//
//   waiting:    spin (a core each) -> yield, if that returns soon -> sleep (futex)     Patience, wait_until()
//   notifying:  write the flag, then ring(rank): one load unless that rank sleeps
//
// Doorbells are stored in memory that all ranks of a group share, with one bell per rank. A rank
// that changes something that rank r may wait for rings r's bell afterwards. A ring means "check
// again"; it does not tell what happened. Only rings that find a sleeper are counted, so a bell
// does not replace checking. Any number of threads of a rank may wait.
#pragma once
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>

namespace weft::transport {

bool register_for_process_barriers();

// One simple policy for idle and busy machines. Spinning covers events that come at once: if it
// takes longer, the awaited rank may need this very core. Yielding lasts longer than a scheduler
// time slice, after which a preempted rank runs again. Sleeping sooner would cost a wake-up every
// time. Among ranks that share cores with other processes, those that yield get their time slices
// back together, while those that spin use them up one by one. (16 ranks and 4 busy processes on 16
// virtual cores, calls of 256 bytes: 5 us; with 40 us of spinning 48, with 5 ms 4000.)
struct Patience {
  std::int32_t spins = 20;                     // about a microsecond; 0 with more ranks than cores
  std::chrono::nanoseconds yields{5'000'000};  // duration, after spinning
};

// The policy for `ranks` processes or threads on this machine's cores.
Patience patience_for(std::int32_t ranks);

inline constexpr std::int32_t kMostLocalRanks = 256;

// Whether this process takes part in membarrier(), a barrier that the kernel runs on all processors
// at once. Sleepers issue it, so that ringers need no fence. Rings are far more frequent than
// sleeps.
inline const bool kProcessBarriers = register_for_process_barriers();
// Issues such a barrier: afterwards this thread sees all earlier stores of those processes'
// threads.
void barrier_on_all_processors();

class Doorbells {
 public:
  // All zero is a valid initial state: no constructor runs in shared memory.

  // Called by every rank that will ring or sleep, before any does; `ranks` is their number.
  void enter(std::int32_t ranks = 2);

  // Whether ranks are in different scheduler groups (scheduler_group.h): then yielding a core does
  // not give it to a waiting rank of another group.
  bool is_split() const { return split_.load(std::memory_order_relaxed) != 0; }

  std::uint32_t read(std::int32_t rank) const { return bells_[rank].count.load(std::memory_order_acquire); }

  // Wakes `rank` if it sleeps; returns whether it did. REQUIRES: the change was stored before.
  bool ring(std::int32_t rank) {
    order_change_before_look();
    return wake_if_asleep(rank);
  }
  // The same for all of `ranks` ranks except `self`: one fence for all.
  void ring_others(std::int32_t ranks, std::int32_t self) {
    order_change_before_look();
    for (std::int32_t rank = 0; rank < ranks; ++rank)
      if (rank != self) wake_if_asleep(rank);
  }
  void ring_all(std::int32_t ranks) { ring_others(ranks, -1); }

  // Sleeps until the bell differs from `seen`, at most `limit`. Spinning and yielding are up to the
  // caller, which knows what to check.
  //
  //   const auto seen = bells.prepare(rank);    // from here on, changes are not missed
  //   if (!ready()) bells.sleep(rank, seen, limit);
  //   bells.finish(rank);
  std::uint32_t prepare(std::int32_t rank);
  void sleep(std::int32_t rank, std::uint32_t seen, std::chrono::nanoseconds limit);
  void finish(std::int32_t rank);

 private:
  // No wake-up is lost, since each side writes, fences, then reads what the other writes:
  //
  //   ringer    change = new;   fence;   sleepers?      at least one of the two reads sees the other's
  //   sleeper   ++sleepers;     fence;   change?        write, however the CPU reorders
  //
  // Among few ranks the sleeper issues a barrier on all processors, so the ringer needs only a
  // compiler fence. Among many ranks it would interrupt all of them whenever one goes to sleep.
  static constexpr std::int32_t kMostBarrierRanks = 4;
  bool fences_needed() const {
    return !kProcessBarriers || fences_needed_.load(std::memory_order_relaxed) != 0;
  }
  void order_change_before_look() const {
    if (fences_needed()) {
      fence();
    } else {
      std::atomic_signal_fence(std::memory_order_seq_cst);
    }
  }
  static void fence();
  void fence_against_ringers() const;

  bool wake_if_asleep(std::int32_t rank) {
    const std::uint16_t asleep = sleepers_[rank].load(std::memory_order_relaxed);
    return asleep != 0 && (asleep & kWoken) == 0 && wake(rank);
  }
  bool wake(std::int32_t rank);

  struct alignas(64) Bell {
    std::atomic<std::uint32_t> count;  // the futex
  };
  // Sleeping (or about to sleep) threads per rank. Every ringer reads this, so it is packed. The
  // first of several ringers sets kWoken and wakes the sleepers; the others do nothing.
  static constexpr std::uint16_t kWoken = 1 << 15;
  std::atomic<std::uint64_t> scheduler_group_;  // of the first rank that entered
  std::atomic<std::uint16_t> split_;
  std::atomic<std::uint16_t> fences_needed_;
  std::array<std::atomic<std::uint16_t>, kMostLocalRanks> sleepers_;
  alignas(64) std::array<Bell, kMostLocalRanks> bells_;
};

// Hints to the core that this thread only waits, so that the sibling hardware thread gets priority.
inline void spin_pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");  // about ten cycles; `yield` is a no-op on most cores
#endif
}

// Yields the core for one time slice, and records how long that took.
void yield_core();

// Whether yields return soon. If a compute-bound program shares the core, a yield lasts that
// program's whole time slice, milliseconds, and costs the rank its own slice as well. A rank that
// sleeps instead is scheduled as soon as it is woken, because the scheduler owes it time. So after
// a long yield, the threads of this process sleep for a while. (Two ranks on two cores with four
// busy programs, a call after every 0.1 ms of work: 430 calls per second with yields, 1500 this
// way; call after call: 330 and 84,000.)
bool yields_return(std::chrono::steady_clock::time_point now = std::chrono::steady_clock::now());
// Records a yield of duration `took` that ended at `end`.
void note_yield(std::chrono::nanoseconds took, std::chrono::steady_clock::time_point end);

// Waits until ready() holds, at most `limit`; returns whether it does. The thread that makes it
// hold then rings `rank`'s bell. ready() must re-read shared memory each time and be cheap.
template <class Ready>
bool wait_until(Doorbells& bells, std::int32_t rank, const Patience& patience, std::chrono::nanoseconds limit,
                Ready ready) {
  if (ready()) return true;
  for (std::int32_t spin = 0; spin < patience.spins; ++spin) {
    spin_pause();
    if (ready()) return true;
  }
  auto now = std::chrono::steady_clock::now();
  // Written so that an infinite limit does not overflow.
  const auto begin = now;
  const auto left = [&] { return limit - (now - begin); };
  const bool in_vain = patience.spins == 0 && bells.is_split();
  while (!in_vain && yields_return(now) && now - begin < patience.yields && left().count() > 0) {
    yield_core();
    if (ready()) return true;
    now = std::chrono::steady_clock::now();
  }
  while (left().count() > 0) {
    const std::uint32_t seen = bells.prepare(rank);
    const bool already = ready();
    if (!already) bells.sleep(rank, seen, left());
    bells.finish(rank);
    if (already || ready()) return true;
    now = std::chrono::steady_clock::now();
  }
  return ready();
}

}  // namespace weft::transport
