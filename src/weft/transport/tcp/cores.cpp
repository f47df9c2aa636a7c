#include "weft/transport/tcp/cores.h"

#include <sched.h>

#include <algorithm>

namespace weft::transport::tcp {

namespace {

using namespace std::chrono_literals;

constexpr std::chrono::nanoseconds kLastingShare = 300us;  // others pass by themselves
// A turn of a stranger's, more or less; and at most, where moves did not last.
constexpr std::chrono::nanoseconds kShortestStay = 4ms, kLongestStay = 256ms;
constexpr std::chrono::nanoseconds kLasting = 20ms;  // a move that was worth it

}  // namespace

Cores::Cores(std::int32_t rank, std::int32_t ranks, std::int32_t neighbours, std::int32_t cores)
    : rank_(rank),
      fair_((std::max(neighbours, 1) - 1) / std::max(cores, 1) + 1),
      core_of_(static_cast<std::size_t>(ranks), -1),
      stay_(kShortestStay) {}

bool Cores::should_leave(std::int32_t here, Time now) {
  const auto others = std::ranges::count(core_of_, here);
  if (here < 0 || others < fair_) {
    shared_since_ = {};
    return false;
  }
  if (shared_since_ == Time{}) shared_since_ = now;
  const auto higher = std::count(core_of_.begin() + rank_ + 1, core_of_.end(), here);
  if (now - shared_since_ < (1 + higher) * kLastingShare || (moved_at_ != Time{} && now - moved_at_ < stay_))
    return false;
  const bool undone = moved_at_ != Time{} && now - moved_at_ < stay_ + kLasting;
  stay_ = undone ? std::min(2 * stay_, kLongestStay) : kShortestStay;
  moved_at_ = now;
  shared_since_ = {};
  return true;
}

std::int32_t Cores::better_core(std::span<const std::int32_t> allowed) const {
  const auto taken = [this](std::int32_t core) { return std::ranges::count(core_of_, core); };
  const auto emptiest = std::ranges::min_element(allowed, {}, taken);
  return emptiest != allowed.end() && taken(*emptiest) < fair_ ? *emptiest : -1;
}

std::int32_t current_core() { return sched_getcpu(); }

void leave_core(const Cores& cores) {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  std::vector<std::int32_t> choices;
  for (std::int32_t core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &allowed)) choices.push_back(core);
  const std::int32_t core = cores.better_core(choices);
  if (core < 0) return;
  cpu_set_t there;
  CPU_ZERO(&there);
  CPU_SET(core, &there);
  if (sched_setaffinity(0, sizeof there, &there) == 0) sched_setaffinity(0, sizeof allowed, &allowed);
}

}  // namespace weft::transport::tcp
