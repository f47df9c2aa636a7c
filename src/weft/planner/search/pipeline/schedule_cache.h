// weft/planner/search/pipeline/schedule_cache.h -- cache of unfolded schedules, by shape.
//
// Hundreds of candidates differ only in their meshes and share the order of their passes.
#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>

#include "weft/planner/search/pipeline/estimate_pipeline.h"

namespace weft::search {

// Thread-safe.
class ScheduleCache {
 public:
  // Null where the shape has no schedule.
  std::shared_ptr<const Unfolded> at(const TimeShape& shape);

 private:
  using Key = std::tuple<std::string, std::int32_t, std::int32_t, std::int64_t>;

  std::mutex mutex_;
  std::map<Key, std::shared_ptr<const Unfolded>> known_;
  std::size_t passes_ = 0;  // over all cached schedules
};

}  // namespace weft::search
