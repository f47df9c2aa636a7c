#include "weft/comm/direct_trial.h"

#include <algorithm>
#include <numeric>

namespace weft::comm {
namespace {

// Less than this is no reason to change: next time it may be the other way round.
constexpr double kClearly = 1.03;
// Calls between trials that tell nothing, at most.
constexpr std::uint32_t kMostUnknown = 250;

}  // namespace

double DirectTrial::Times::usual() const {
  std::array<double, kMostTimes> sorted = seconds;
  std::sort(sorted.begin(), sorted.begin() + count);
  const std::uint32_t half = (count + 1) / 2;
  return std::accumulate(sorted.begin(), sorted.begin() + half, 0.0) / half;
}

std::uint64_t DirectTrial::find_quickest(std::span<const CopyMode> modes) const {
  const auto usual = [&](CopyMode mode) {
    const Times& times = times_[static_cast<std::size_t>(mode)];
    return mode == usual_ ? times.usual() / kClearly : times.usual();
  };
  for (const CopyMode mode : modes)
    if (times_[static_cast<std::size_t>(mode)].count < kTurns) return 0;
  const CopyMode quickest = *std::ranges::min_element(modes, {}, usual);
  return static_cast<std::uint64_t>(quickest) + 1;
}

DirectTrial::Plan DirectTrial::next(std::span<const CopyMode> modes, std::uint32_t calls_a_turn,
                                    SharedWord& verdict) {
  const auto in_all = static_cast<std::uint32_t>(kTurns * modes.size() * calls_a_turn);
  if (tried_ >= in_all) {
    const std::uint64_t quickest = first_says(verdict, ++settled_, find_quickest(modes));
    const CopyMode before = usual_;
    if (quickest != 0) usual_ = static_cast<CopyMode>(quickest - 1);
    // Where the times did not tell, it is soon tried again; where they never do, no longer often. A verdict
    // is looked at again soon if it is new, and less and less often if it stays.
    const bool stays = quickest != 0 && pause_ >= kCallsBetween && before == usual_;
    pause_ = quickest == 0 ? std::min(2 * pause_, kMostUnknown)
             : stays       ? std::min(4 * pause_, kMostBetween)
                           : kCallsBetween;
    rest_ = pause_;
    tried_ = 0;
    times_ = {};
  }
  if (rest_ != 0) {
    --rest_;
    return {usual_, false};
  }
  return {modes[tried_++ / calls_a_turn % modes.size()], true};
}

void DirectTrial::note(CopyMode mode, double seconds) {
  Times& times = times_[static_cast<std::size_t>(mode)];
  if (times.count < kMostTimes) times.seconds[times.count++] = seconds;
}

std::uint64_t first_says(SharedWord& word, std::uint64_t question, std::uint64_t mine) {
  std::uint64_t said = word.load(std::memory_order_acquire);
  const std::uint64_t answer = question * (kMostSaid + 1) + mine;
  while (said / (kMostSaid + 1) < question) {
    if (word.compare_exchange_weak(said, answer, std::memory_order_acq_rel)) return mine;
  }
  return said % (kMostSaid + 1);
}

}  // namespace weft::comm
