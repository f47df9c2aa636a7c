// weft/communication/transport/doorbell.h -- how ranks of one machine wait for each other and leave cores to others.
//
//   waiting:  spin (a core each) -> yield, where that returns soon -> sleep (futex)     Patience, wait_until()
//   telling:  write the flag, then ring(rank): one load unless that rank sleeps
//
// A Doorbells lies in memory that all ranks of a group share, with one bell for each rank. A rank that changes
// something which rank r may wait for rings r's bell afterwards. A ring means "look again"; it does not say
// what happened. Only rings that find a sleeper count, so a bell is no substitute for looking.
// Any number of threads of a rank may wait.
#pragma once
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>

namespace weft::transport {

bool register_for_process_barriers();

// One simple way for quiet and busy machines. Spinning is for what comes at once: whoever takes longer may need
// this very core. Yields last longer than a turn of the scheduler, after which a rank that was put aside is
// back. Sleeping sooner would cost a wake-up every time; and of ranks that share cores with strangers, those
// that yield all get their turns back together, while those that spin use up their turns one by one. (16 ranks
// and 4 busy processes on 16 virtual cores, calls of 256 bytes: 5 us; with 40 us of spinning 48, with 5 ms 4000.)
struct Patience {
  std::int32_t spins = 20;                     // about a microsecond; 0 where ranks outnumber cores
  std::chrono::nanoseconds yields{5'000'000};  // for so long after spinning
};

// What suits `ranks` processes or threads on this machine's cores.
Patience patience_for(std::int32_t ranks);

inline constexpr std::int32_t kMostLocalRanks = 256;

// Whether this process takes part in barriers that the kernel runs on all processors at once (membarrier). A
// sleeper asks for one, so that ringers need no fence of their own. Rings are far more frequent than sleeps.
inline const bool kProcessBarriers = register_for_process_barriers();
// Runs such a barrier: afterwards this thread sees whatever the threads of those processes had stored before.
void barrier_on_all_processors();

class Doorbells {
 public:
  // All zero is a good initial state: no constructor runs in shared memory.

  // By every rank that is going to ring or to sleep, before any does; `ranks` is how many there are.
  void enter(std::int32_t ranks = 2);

  // Whether ranks are in several groups of the scheduler (scheduler_group.h): then yielding a core does not
  // give it to a rank of another group that waits for it.
  bool is_split() const { return split_.load(std::memory_order_relaxed) != 0; }

  std::uint32_t read(std::int32_t rank) const { return bells_[rank].count.load(std::memory_order_acquire); }

  // REQUIRES: the change was stored before. Wakes `rank` if it sleeps, and says whether it did.
  bool ring(std::int32_t rank) {
    order_change_before_look();
    return wake_if_asleep(rank);
  }
  // The same for all of `ranks` ranks but `self`: one fence for all.
  void ring_others(std::int32_t ranks, std::int32_t self) {
    order_change_before_look();
    for (std::int32_t rank = 0; rank < ranks; ++rank)
      if (rank != self) wake_if_asleep(rank);
  }
  void ring_all(std::int32_t ranks) { ring_others(ranks, -1); }

  // Sleeps until the bell is no longer at `seen`, at most `limit`. The caller spins and yields before: it knows
  // what to look at.
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
  //   sleeper   ++sleepers;     fence;   change?        write, whatever the machine reorders
  //
  // Among few ranks the sleeper's fence is one on all processors, so the ringer's need only hold back the
  // compiler. Among many ranks it would interrupt all of them whenever one goes to sleep.
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
  // How many threads of each rank sleep or are about to. Every ringer reads this, so it is packed. The first of
  // many ringers sets kWoken and wakes the sleepers; the others have nothing to do.
  static constexpr std::uint16_t kWoken = 1 << 15;
  std::atomic<std::uint64_t> scheduler_group_;  // of the first that entered
  std::atomic<std::uint16_t> split_;
  std::atomic<std::uint16_t> fences_needed_;
  std::array<std::atomic<std::uint16_t>, kMostLocalRanks> sleepers_;
  alignas(64) std::array<Bell, kMostLocalRanks> bells_;
};

// Tells the core that this thread only waits, so that the core's other hardware thread goes first.
inline void spin_pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");  // some ten cycles; `yield` does nothing on most cores
#endif
}

// Lets another thread of this machine run for one turn, and notes how long that took.
void yield_core();

// Whether yields return soon. Where a program that needs all of its time shares the core, one lasts that program's
// whole turn, milliseconds, and costs the rank its own turn as well. A rank that sleeps instead is put back as soon as
// it is woken, because the scheduler owes it time. So after a long yield the threads of this process sleep for a while.
// (Two ranks on two cores with four busy programs, a call after every 0.1 ms of work: 430 calls per second, so 1500;
// call after call: 330, so 84,000.)
bool yields_return(std::chrono::steady_clock::time_point now = std::chrono::steady_clock::now());
// A yield that ended at `end` took so long.
void note_yield(std::chrono::nanoseconds took, std::chrono::steady_clock::time_point end);

// Waits until ready() holds, at most `limit`; answers whether it does. Whoever makes it hold rings `rank`'s
// bell afterwards. ready() must look at shared memory anew each time and be cheap.
template <class Ready>
bool wait_until(Doorbells& bells, std::int32_t rank, const Patience& patience, std::chrono::nanoseconds limit,
                Ready ready) {
  if (ready()) return true;
  for (std::int32_t spin = 0; spin < patience.spins; ++spin) {
    spin_pause();
    if (ready()) return true;
  }
  auto now = std::chrono::steady_clock::now();
  // Written so that an endless limit does not overflow.
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
