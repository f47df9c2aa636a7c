#include "weft/planner/search/pipeline/schedule_cache.h"

namespace weft::search {

std::shared_ptr<const Unfolded> ScheduleCache::at(const TimeShape& shape) {
  constexpr std::size_t kMostPasses = 4'000'000;  // about 50 MB
  const Key key(shape.schedule->name, shape.stages, shape.chunks, shape.micro_batches);
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = known_.find(key); found != known_.end()) return found->second;
  }
  Result<Unfolded> made = unfold(shape);
  auto kept = made.ok() ? std::make_shared<const Unfolded>(std::move(*made)) : nullptr;
  const std::lock_guard lock(mutex_);
  if (passes_ >= kMostPasses) known_.clear(), passes_ = 0;
  if (kept)
    for (const auto& order : kept->schedule.orders) passes_ += order.size();
  return known_.insert_or_assign(key, std::move(kept)).first->second;
}

}  // namespace weft::search
