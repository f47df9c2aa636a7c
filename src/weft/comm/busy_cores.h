// weft/comm/busy_cores.h -- which cores are kept busy, by whomever.
//
// From the idle times that the kernel counts, in ticks of some milliseconds. Reading them takes tens of
// microseconds, so it is done seldom.
#pragma once
#include <chrono>
#include <optional>
#include <string_view>
#include <vector>

namespace weft::comm {

// Idle ticks of each core, by number, as /proc/stat has them; -1 of one that is not there.
std::vector<long> parse_idle_ticks(std::string_view text);

class BusyCores {
 public:
  using Clock = std::chrono::steady_clock;

  // Whether the core was hardly ever idle lately; nothing while that is not known: ask again later.
  std::optional<bool> busy(int core);

  static constexpr std::chrono::milliseconds kBetweenLooks{50}, kLatest{1000};

 private:
  void look(Clock::time_point now);

  Clock::time_point looked_at_ = {};
  std::vector<long> idle_ticks_;
  std::vector<bool> busy_;  // between the last two looks; empty: not known
};

}  // namespace weft::comm
