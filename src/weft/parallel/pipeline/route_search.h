// weft/parallel/pipeline/route_search.h -- the best schedule found on one route.
//
// Each kind of candidate has a few numbers: what stages prefer (greedy.h), the slopes of lines (skeleton.h), how
// long stages may be idle (turns.h). A grid of them is tried first; then those of the best are varied at random, from
// a fixed seed. Few passes on a line are searched through at the end.
#pragma once
#include <limits>
#include <string>
#include <string_view>

#include "weft/parallel/pipeline/greedy.h"
#include "weft/parallel/pipeline/skeleton.h"
#include "weft/parallel/pipeline/synthesize.h"
#include "weft/parallel/pipeline/turns.h"

namespace weft::pipeline {

class RouteSearch {
 public:
  // `request` has been checked and outlives the search. `shape` is a line, a loop or a v.
  RouteSearch(const SynthesisRequest& request, Schedule shape);

  // Stops early once something costs no more than `enough`.
  void run(double enough);

  bool found() const { return !orders_.empty(); }
  double cost() const { return cost_; }
  Schedule schedule() const { return to_schedule(shape_, network_, orders_); }
  const std::string& from() const { return from_; }  // what kind of candidate it is
  std::int64_t tried() const { return tried_; }
  bool is_proven() const { return proven_; }  // nothing on this route is better

 private:
  struct Line {
    Slopes slopes;
    double patience = 0;
    double window = 0;  // 0: exactly in the order of the lines
  };

  // Each returns whether it is the best so far.
  bool judge(const Orders& orders, std::string_view from);
  bool try_policies(const std::vector<StagePolicy>& policies);
  bool try_line(const Line& line);
  bool try_turns(const TurnsPolicy& turns);

  void greedy_grid();
  void slope_grid();
  void turns_grid();
  void vary(double enough);
  void search_through();

  const SynthesisRequest& request_;
  Schedule shape_;
  Network network_;
  Limits limits_;
  double period_ = 0;  // what a micro-batch takes on the slowest stage
  std::int64_t variations_ = 0, tried_ = 0;
  double cost_ = std::numeric_limits<double>::infinity(), other_ = cost_;
  Orders orders_;
  std::string from_;
  std::vector<StagePolicy> policies_;
  Line line_;
  TurnsPolicy turns_;
  std::vector<double> idle_;  // of each stage where B and F take turns
  bool proven_ = false;
  std::vector<double> begin_;
};

// In forward passes of one whole stage.
double memory_limit(const SynthesisRequest& request, std::size_t stage);

}  // namespace weft::pipeline
