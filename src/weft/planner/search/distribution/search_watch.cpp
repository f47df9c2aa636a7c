#include "weft/planner/search/distribution/search_watch.h"

#include <utility>

namespace weft::search {

SearchWatch::SearchWatch(Watching watching) : watching_(std::move(watching)) {}

double SearchWatch::since_began() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
}

void SearchWatch::see(std::int64_t looked_at, double best_seconds) {
  found_ = true;
  progress_.looked_at = looked_at;
  progress_.best_seconds = best_seconds;
}

bool SearchWatch::is_late() const { return !interrupted_ && found_ && since_began() > watching_.seconds; }

bool SearchWatch::over() {
  if (interrupted_) return true;
  if (std::this_thread::get_id() == owner_) {
    if (watching_.interrupted && watching_.interrupted()) {
      interrupted_ = true;
      return true;
    }
    // Short searches show no progress: the line would only flicker.
    constexpr double kFirst = 0.4, kBetween = 0.1;
    if (const double now = since_began();
        watching_.on_progress && now >= kFirst && now - shown_ >= kBetween) {
      shown_ = progress_.seconds = now;
      watching_.on_progress(progress_);
    }
  }
  return is_late();
}

}  // namespace weft::search
