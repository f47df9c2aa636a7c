// weft/planner/search/distribution/search_watch.h -- progress, interruption and time limit of a search.
//
//   SearchWatch watch({.interrupted = ctrl_c, .on_progress = show, .seconds = 5});
//   watch.expect(bound);                         // lower bound on the step time
//   while (!watch.over()) watch.see(looked_at, best);
//
// A search that ends early keeps what it has found. Evaluating threads call over() before each
// plan. Only the thread that made the watch calls the two callbacks.
#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <thread>

namespace weft::search {

struct SearchProgress {
  std::int64_t looked_at = 0;  // distributions searched
  double best_seconds = 0;     // of a step; 0: none fits yet
  double bound_seconds = 0;    // lower bound; 0: unknown
  double seconds = 0;          // since the search began
};

struct Watching {
  std::function<bool()> interrupted = {};  // true: end now
  std::function<void(const SearchProgress&)> on_progress = {};
  double seconds = std::numeric_limits<double>::infinity();  // time limit, once something was found
};

class SearchWatch {
 public:
  explicit SearchWatch(Watching watching);

  void expect(double bound_seconds) { progress_.bound_seconds = bound_seconds; }
  // Updates the progress and starts the time limit. `best_seconds`: the best that fits; 0: none
  // does yet.
  void see(std::int64_t looked_at, double best_seconds);

  bool over();
  bool is_limited() const { return watching_.seconds < std::numeric_limits<double>::infinity(); }
  bool was_interrupted() const { return interrupted_; }
  bool is_late() const;  // past the limit and not interrupted

 private:
  double since_began() const;

  const Watching watching_;
  const std::thread::id owner_ = std::this_thread::get_id();
  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  SearchProgress progress_;
  double shown_ = 0;
  std::atomic<bool> interrupted_ = false, found_ = false;
};

}  // namespace weft::search
