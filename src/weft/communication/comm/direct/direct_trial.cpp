#include "weft/communication/comm/direct/direct_trial.h"

#include <algorithm>

namespace weft::comm {
namespace {

// A smaller gain does not justify reading through the OS kernel: the next trial may find the
// opposite.
constexpr double kClearly = 1.03;
// A larger slowdown triggers a new trial.
constexpr double kMuchSlower = 2;
// Timed calls per window.
constexpr std::uint32_t kTimed = 4;

enum Answer : std::uint64_t { kTimesDoNotTell, kSlots, kKernel };

}  // namespace

void DirectTrial::begin(Phase phase) {
  phase_ = phase;
  calls_ = 0;
  times_ = {};
  watched_ = usual_ = kUnknown;
}

std::uint64_t DirectTrial::quicker() const {
  const double slots = times_[0].least, kernel = times_[1].least;
  if (slots == kUnknown || kernel == kUnknown) return kTimesDoNotTell;
  return kernel * kClearly < slots ? kKernel : kSlots;
}

bool DirectTrial::has_doubled() const {
  if (!known_) return true;
  return watched_ != kUnknown && watched_ > kMuchSlower * usual_;
}

DirectTrial::Plan DirectTrial::next(std::uint32_t calls_per_turn, SharedWord& answers) {
  if (phase_ == Phase::warm_up && calls_ == kWarmUps) {
    begin(Phase::trying);
  } else if (phase_ == Phase::trying && calls_ == 2 * kTurns * calls_per_turn) {
    const std::uint64_t answer = decide_first(answers, ++questions_, quicker());
    known_ = answer != kTimesDoNotTell;
    if (known_) kernel_ = answer == kKernel;
    begin(Phase::settled);
  } else if (phase_ == Phase::settled && calls_ == kWindow) {
    const bool again = decide_first(answers, ++questions_, has_doubled() ? 1 : 0) != 0;
    usual_ = std::min(usual_, watched_);
    watched_ = kUnknown;
    calls_ = 0;
    if (again) begin(Phase::trying);
  }
  const std::uint32_t call = calls_++;
  switch (phase_) {
    case Phase::warm_up: last_ = {}; break;
    case Phase::trying:
      last_ = {call / calls_per_turn % 2 != 0, call % calls_per_turn != 0};
      if (!last_.is_timed) times_[last_.kernel ? 1 : 0].before = kUnknown;
      break;
    case Phase::settled: last_ = {kernel_, call >= kWindow - kTimed}; break;
  }
  return last_;
}

void DirectTrial::note(double seconds) {
  if (phase_ == Phase::settled) {
    watched_ = std::min(watched_, seconds);
    return;
  }
  Times& times = times_[last_.kernel ? 1 : 0];
  times.least = std::min(times.least, (times.before + seconds) / 2);
  times.before = seconds;
}

std::uint64_t decide_first(SharedWord& word, std::uint64_t question, std::uint64_t mine) {
  std::uint64_t said = word.load(std::memory_order_acquire);
  const std::uint64_t answer = question * (kMostSaid + 1) + mine;
  while (said / (kMostSaid + 1) < question) {
    if (word.compare_exchange_weak(said, answer, std::memory_order_acq_rel)) return mine;
  }
  return said % (kMostSaid + 1);
}

}  // namespace weft::comm
