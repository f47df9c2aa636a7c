#include "weft/comm/direct/direct_trial.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

namespace weft::comm {
namespace {

// Less than this is no reason to change: next time it may be the other way round.
constexpr double kClearly = 1.03;
// More than this is reason enough not to try it once more.
constexpr double kFarBehind = 1.25;
// Calls between trials that tell nothing, at most.
constexpr std::uint32_t kMostUnknown = 250;

constexpr std::uint64_t bit_of(CopyMode mode) { return std::uint64_t{1} << static_cast<unsigned>(mode); }
static_assert(bit_of(static_cast<CopyMode>(kCopyModes)) - 1 <= kMostSaid);

// The n-th of those whose bits are set.
CopyMode nth(std::uint64_t bits, std::uint32_t n) {
  for (; n != 0; --n) bits &= bits - 1;
  return static_cast<CopyMode>(std::countr_zero(bits));
}

}  // namespace

void DirectTrial::Times::add(double now) {
  const std::uint32_t before = calls_of_turn++;
  const double one_before = std::exchange(last, now);
  if (before == 0) return;
  // The second stands alone until a third makes a pair of it.
  if (before != 2 && count < kMostTimes) ++count;
  seconds[count - 1] = before == 1 ? now : (one_before + now) / 2;
}

double DirectTrial::Times::usual(bool oversubscribed) const {
  auto sorted = seconds;
  std::sort(sorted.begin(), sorted.begin() + count);
  return sorted[oversubscribed ? count / 2 : 0];
}

std::uint64_t DirectTrial::survivors(bool oversubscribed) const {
  std::array<double, kCopyModes> usual;
  double least = std::numeric_limits<double>::infinity();
  std::uint64_t quickest = 0;
  for (std::uint64_t bits = left_; bits != 0; bits &= bits - 1) {
    const CopyMode mode = nth(bits, 0);
    const Times& times = times_[static_cast<std::size_t>(mode)];
    if (times.count == 0) return 0;
    double& seconds = usual[static_cast<std::size_t>(mode)];
    seconds = times.usual(oversubscribed) / (mode == usual_ ? kClearly : 1);
    if (seconds < least) least = seconds, quickest = bit_of(mode);
  }
  if (rounds_ + 1 >= kRounds) return quickest;
  std::uint64_t stay = 0;
  for (std::uint64_t bits = left_; bits != 0; bits &= bits - 1)
    if (usual[static_cast<std::size_t>(nth(bits, 0))] <= least * kFarBehind) stay |= bit_of(nth(bits, 0));
  return stay;
}

void DirectTrial::end_round(std::uint64_t stay) {
  tried_ = 0;
  for (Times& times : times_) times.calls_of_turn = 0;
  left_ = stay & left_;
  if (rounds_++ == 0) near_ = left_;
  if (std::popcount(left_) > 1) return;
  const CopyMode before = usual_;
  if (left_ != 0) usual_ = nth(left_, 0);
  // Where the times did not tell, it is soon tried again; where they never do, no longer often. A verdict
  // is looked at again soon if it is new, and less and less often if it stays.
  const bool stays = left_ != 0 && pause_ >= kCallsBetween && before == usual_;
  const bool clear = stays && std::popcount(near_) == 1;
  pause_ = left_ == 0 ? std::min(2 * pause_, kMostUnknown)
           : clear    ? kMostBetween
           : stays    ? std::min(4 * pause_, kMostBetween)
                      : kCallsBetween;
  is_known_ |= left_ != 0;
  rest_ = pause_;
  rounds_ = 0;
  // What was far behind twice need not be tried each time.
  left_ = stays && pause_ < kMostBetween ? near_ : modes_;
  times_ = {};
}

DirectTrial::Plan DirectTrial::next(std::span<const CopyMode> modes, const Turn& turn, SharedWord& verdict,
                                    CopyMode guess) {
  std::uint64_t bits = 0;
  for (const CopyMode mode : modes) bits |= bit_of(mode);
  if (modes_ == 0) usual_ = guess;
  if (bits != modes_) {
    modes_ = left_ = bits;
    tried_ = rounds_ = 0;
    times_ = {};
  }
  if (tried_ >= static_cast<std::uint32_t>(std::popcount(left_)) * turn.calls)
    end_round(first_says(verdict, ++settled_, survivors(turn.oversubscribed)));
  if (rest_ != 0) {
    --rest_;
    return {(bit_of(usual_) & modes_) != 0 ? usual_ : CopyMode::slots, false};
  }
  return {nth(left_, tried_++ / turn.calls), true};
}

void DirectTrial::note(CopyMode mode, double seconds) { times_[static_cast<std::size_t>(mode)].add(seconds); }

std::uint64_t first_says(SharedWord& word, std::uint64_t question, std::uint64_t mine) {
  std::uint64_t said = word.load(std::memory_order_acquire);
  const std::uint64_t answer = question * (kMostSaid + 1) + mine;
  while (said / (kMostSaid + 1) < question) {
    if (word.compare_exchange_weak(said, answer, std::memory_order_acq_rel)) return mine;
  }
  return said % (kMostSaid + 1);
}

}  // namespace weft::comm
