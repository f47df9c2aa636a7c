#include "weft/transport/thread_placement.h"

#include <algorithm>

#include "weft/base/machine.h"
#include "weft/transport/variable.h"

namespace weft::transport {

namespace {

using namespace std::chrono_literals;

constexpr std::chrono::nanoseconds kLastingShare = 300us;  // shorter ones end by themselves
// About one turn of another process; and at most, where moves did not last.
constexpr std::chrono::nanoseconds kShortestStay = 4ms, kLongestStay = 256ms;
constexpr std::chrono::nanoseconds kLasting = 20ms;  // a move that was worth it

}  // namespace

bool environment_places_threads() { return variable("WEFT_PLACE_THREADS") == "1"; }

ThreadPlacement::ThreadPlacement(std::int32_t rank, std::int32_t ranks, std::int32_t neighbours,
                                 std::int32_t cores)
    : rank_(rank),
      fair_((std::max(neighbours, 1) - 1) / std::max(cores, 1) + 1),
      cores_(static_cast<std::size_t>(ranks), -1),
      stay_(kShortestStay) {}

// Ranks from `from_rank` on that are on a core.
std::int64_t ThreadPlacement::count(std::int32_t core, std::int32_t from_rank) const {
  return std::count(cores_.begin() + from_rank, cores_.end(), core);
}

bool ThreadPlacement::should_leave(std::int32_t here, Time now) {
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

std::int32_t ThreadPlacement::better_core(std::span<const std::int32_t> allowed) const {
  const auto taken = [this](std::int32_t core) { return count(core); };
  const auto emptiest = std::ranges::min_element(allowed, {}, taken);
  return emptiest != allowed.end() && taken(*emptiest) < fair_ ? *emptiest : -1;
}

bool ThreadPlacement::place_thread(std::int32_t here, Time now) {
  if (!should_leave(here, now)) return false;
  const std::int32_t core = better_core(allowed_processors());
  if (core >= 0) move_to_processor(core);
  return core >= 0;
}

}  // namespace weft::transport
