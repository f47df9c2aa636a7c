// weft/planner/search/distribution/search_watch.h -- who looks on while a search runs, and when it has to end.
//
//   SearchWatch watch({.interrupted = ctrl_c, .on_progress = show, .seconds = 5});
//   watch.expect(bound);                         // no plan takes less
//   while (!watch.over()) watch.see(looked_at, best);
//
// A search ends where it is: what it has found stays. Threads that evaluate plans ask over() before each; the
// thread that made the watch is the only one that calls the two functions.
#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <thread>

namespace weft::search {

struct SearchProgress {
  std::int64_t looked_at = 0;  // distributions
  double best_seconds = 0;     // of a step; 0: none fits yet
  double bound_seconds = 0;    // no plan takes less; 0: not known
  double seconds = 0;          // since the search began
};

struct Watching {
  std::function<bool()> interrupted = {};  // true: end now
  std::function<void(const SearchProgress&)> on_progress = {};
  double seconds =
      std::numeric_limits<double>::infinity();  // after which a search that has found something ends
};

class SearchWatch {
 public:
  explicit SearchWatch(Watching watching);

  void expect(double bound_seconds) { progress_.bound_seconds = bound_seconds; }
  // So many were looked at so far, and this is the best that fits; 0: none does. It is found even so.
  void see(std::int64_t looked_at, double best_seconds);

  bool over();
  bool is_limited() const { return watching_.seconds < std::numeric_limits<double>::infinity(); }
  bool was_interrupted() const { return interrupted_; }
  bool is_late() const;  // and nothing else ended it

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
