// weft/communication/comm/metrics.h -- counters per collective of a rank.
//
//   all_reduce   4711 calls   1.2 GiB   3.4 s   2 waits   0 faults
//
// Written by the thread that drives calls, one at a time, without locks or atomic
// read-modify-writes; read at any time by another thread. Times are measured only after the first
// query: reading a clock is too slow for a call of 200 ns.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "weft/base/result.h"
#include "weft/communication/comm/call.h"

namespace weft::comm {

inline constexpr std::size_t kKinds = static_cast<std::size_t>(Kind::custom) + 1;

// Counts of one collective. `calls` excludes failed calls.
struct Tally {
  std::uint64_t calls = 0;
  std::uint64_t bytes = 0;  // of the larger buffer, as in message_bytes()
  std::uint64_t waits = 0;  // calls without progress for some milliseconds
  std::uint64_t faults = 0;
  double seconds = 0;

  Tally& operator+=(const Tally& other);
  friend bool operator==(const Tally&, const Tally&) = default;
};
using Tallies = std::array<Tally, kKinds>;  // by kind
Tallies& operator+=(Tallies& all, const Tallies& more);

class Metrics {
 public:
  bool is_timed() const { return timed_.load(std::memory_order_relaxed); }
  void take_times() { timed_.store(true, std::memory_order_relaxed); }

  // `elapsed` is in ticks(); 0 if timing is off.
  void add(Kind kind, std::int64_t bytes, std::int64_t elapsed, bool waited, bool failed) {
    Counters& of = counters_[static_cast<std::size_t>(kind)];
    if (failed) {
      grow(of.faults, 1);
      return;
    }
    grow(of.calls, 1);
    grow(of.bytes, static_cast<std::uint64_t>(bytes));
    if (elapsed > 0) grow(of.ticks, static_cast<std::uint64_t>(elapsed));
    if (waited) grow(of.waits, 1);
  }

  Tallies read() const;

 private:
  struct Counters {
    std::atomic<std::uint64_t> calls = 0, bytes = 0, ticks = 0, waits = 0, faults = 0;
  };
  static void grow(std::atomic<std::uint64_t>& counter, std::uint64_t by) {
    counter.store(counter.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
  }

  std::array<Counters, kKinds> counters_ = {};
  std::atomic<bool> timed_{false};
};

// All metrics of a rank.
struct RankMetrics {
  std::int32_t rank = 0, ranks = 0, dead = 0;  // of the job
  Tallies tallies = {};

  friend bool operator==(const RankMetrics&, const RankMetrics&) = default;
};

// Prometheus text format: weft_comm_calls_total{rank="2",collective="all_reduce"} 4711
std::string print_prometheus(const RankMetrics& metrics);

// One line per collective, for `weft top`. The parser fails on text that print_tallies() did not
// write.
std::string print_tallies(const Tallies& tallies);
Result<Tallies> parse_tallies(std::string_view text);

}  // namespace weft::comm
