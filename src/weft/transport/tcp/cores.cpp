#include "weft/transport/tcp/cores.h"

#include <algorithm>

#include "weft/base/machine.h"

namespace weft::transport::tcp {

namespace {

using namespace std::chrono_literals;

constexpr std::chrono::nanoseconds kLastingShare = 300us;  // others pass by themselves
// A foreign process's turn, more or less; and at most, where moves did not last.
constexpr std::chrono::nanoseconds kShortestStay = 4ms, kLongestStay = 256ms;
constexpr std::chrono::nanoseconds kLasting = 20ms;  // a move that was worth it
constexpr std::int32_t kLooksPerAge = 64;

// Of a word: see the header.
constexpr std::uint32_t kField = 1023;
constexpr int kRankBit = 10, kCoreBit = 20, kHopsBit = 30;
constexpr std::int32_t kMostHops = 3;
constexpr std::size_t kMostTried = 8;  // of those that something may be told of

std::uint32_t field(std::int32_t core) {
  return core >= 0 && core < static_cast<std::int32_t>(kField) ? static_cast<std::uint32_t>(core) + 1 : 0;
}

}  // namespace

Cores::Cores(std::int32_t rank, std::int32_t ranks, std::int32_t neighbours, std::int32_t cores)
    : rank_(rank),
      fair_((std::max(neighbours, 1) - 1) / std::max(cores, 1) + 1),
      known_(static_cast<std::size_t>(ranks)),
      stay_(kShortestStay) {}

std::uint32_t Cores::tell(std::int32_t here) {
  const std::uint32_t mine = field(here);
  for (std::size_t tried = 0; tried < std::min(kMostTried, known_.size()); ++tried) {
    told_ = told_ + 1 < known_.size() ? told_ + 1 : 0;
    const Known& other = known_[told_];
    if (other.hops > kMostHops || field(other.core) == 0 || told_ > kField) continue;
    return mine | static_cast<std::uint32_t>(told_) << kRankBit | field(other.core) << kCoreBit |
           static_cast<std::uint32_t>(other.hops) << kHopsBit;
  }
  return mine;
}

void Cores::hear(std::int32_t from, std::uint32_t word) {
  if (const std::uint32_t his = word & kField; his > 0)
    known_[static_cast<std::size_t>(from)] = {static_cast<std::int32_t>(his) - 1, 0};
  const std::uint32_t core = word >> kCoreBit & kField;
  const std::size_t rank = word >> kRankBit & kField;
  const auto hops = static_cast<std::int32_t>(word >> kHopsBit) + 1;
  if (core == 0 || rank >= known_.size() || rank == static_cast<std::size_t>(rank_)) return;
  if (hops <= known_[rank].hops) known_[rank] = {static_cast<std::int32_t>(core) - 1, hops};
}

// Ranks from `from_rank` on that are on a core.
std::int64_t Cores::count(std::int32_t core, std::int32_t from_rank) const {
  return std::count_if(known_.begin() + from_rank, known_.end(),
                       [core](const Known& one) { return one.core == core; });
}

void Cores::forget_some() {
  if (++looks_ % kLooksPerAge != 0) return;
  for (Known& one : known_)
    if (one.hops < kForgotten && ++one.hops == kForgotten) one.core = -1;
}

bool Cores::should_leave(std::int32_t here, Time now) {
  forget_some();
  if (here < 0 || count(here) < fair_) {
    shared_since_ = {};
    return false;
  }
  if (shared_since_ == Time{}) shared_since_ = now;
  const auto higher = count(here, rank_ + 1);
  if (now - shared_since_ < (1 + higher) * kLastingShare || (moved_at_ != Time{} && now - moved_at_ < stay_))
    return false;
  const bool undone = moved_at_ != Time{} && now - moved_at_ < stay_ + kLasting;
  stay_ = undone ? std::min(2 * stay_, kLongestStay) : kShortestStay;
  moved_at_ = now;
  shared_since_ = {};
  return true;
}

std::int32_t Cores::better_core(std::span<const std::int32_t> allowed) const {
  const auto taken = [this](std::int32_t core) { return count(core); };
  const auto emptiest = std::ranges::min_element(allowed, {}, taken);
  return emptiest != allowed.end() && taken(*emptiest) < fair_ ? *emptiest : -1;
}

void leave_core(const Cores& cores) {
  const std::int32_t core = cores.better_core(allowed_processors());
  if (core >= 0) move_to_processor(core);
}

}  // namespace weft::transport::tcp
