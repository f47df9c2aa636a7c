// weft/comm/foreign_load.h -- notices that a core which is yielded goes to a foreign process that keeps it.
//
//   yields of a rank   short short LONG short LONG, and the core was another's meanwhile │ sleep sleep ...
//
// A foreign process is none of the group's. When a rank yields to one, it keeps the core for a whole turn of
// milliseconds; a rank that sleeps and is woken gets its core back at once. So where yields take long again
// and again, the next waits sleep instead. (4 and 8 ranks bound to cores, one of them shared with a busy
// process: up to 2.6 times as fast.) But a virtual core may itself be gone for long, with nobody else on it:
// a yield counts only where another process really ran.
#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>

namespace weft::comm {

// By any number of threads of a rank; none of them waits.
class ForeignLoad {
 public:
  using Clock = std::chrono::steady_clock;

  // Whether note() will ask if the core was given away at all: that takes a system call to know.
  bool suspects(Clock::time_point now) const {
    return now.time_since_epoch() - Clock::duration(long_yield_at_.load(std::memory_order_relaxed)) < kSoon;
  }
  // A yield. REQUIRES: `gave_core` is false where suspects() was false at its begin.
  void note(Clock::time_point begin, Clock::time_point end, bool gave_core) {
    if (end - begin <= kLongYield) return;
    long_yield_at_.store(end.time_since_epoch().count(), std::memory_order_relaxed);
    if (gave_core) sleeps_left_.store(kSleeps, std::memory_order_relaxed);
  }
  // Whether the wait that begins had better sleep.
  bool sleeps() {
    const std::uint32_t left = sleeps_left_.load(std::memory_order_relaxed);
    if (left != 0) sleeps_left_.store(left - 1, std::memory_order_relaxed);
    return left != 0;
  }

  static constexpr std::uint32_t kSleeps = 256;

 private:
  // A load that is met again soon stays; one that is met once in a while has passed by.
  static constexpr std::chrono::microseconds kLongYield{300};
  static constexpr std::chrono::milliseconds kSoon{100};

  std::atomic<std::int64_t> long_yield_at_{0};  // on the clock
  std::atomic<std::uint32_t> sleeps_left_{0};
};

}  // namespace weft::comm
