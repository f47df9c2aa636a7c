#include "weft/comm/direct/direct_placing.h"

#include <sched.h>

#include <chrono>

#include "weft/base/machine.h"

namespace weft::comm {

DirectPlacing::DirectPlacing(GroupFacts& facts, std::int32_t rank, std::int32_t ranks)
    : facts_(facts),
      rank_(rank),
      ranks_(ranks),
      placement_(rank, ranks, ranks, static_cast<std::int32_t>(facts.cores.load(std::memory_order_relaxed))) {
}

std::int32_t DirectPlacing::tell_core() {
  const int here = current_processor();
  if (here < 0 || here >= CPU_SETSIZE) return -1;
  auto& told = facts_.processors[static_cast<std::size_t>(rank_)];
  const auto mine = static_cast<std::uint16_t>(here + 1);
  if (told.load(std::memory_order_relaxed) != mine) told.store(mine, std::memory_order_relaxed);
  return here;
}

void DirectPlacing::place_thread() {
  const std::unique_lock lock(busy_, std::try_to_lock);
  if (!lock) return;
  for (std::int32_t other = 0; other < ranks_; ++other) {
    const auto& told = facts_.processors[static_cast<std::size_t>(other)];
    if (other != rank_) placement_.note(other, told.load(std::memory_order_relaxed) - 1);
  }
  if (placement_.place_thread(tell_core(), std::chrono::steady_clock::now())) tell_core();
}

}  // namespace weft::comm
