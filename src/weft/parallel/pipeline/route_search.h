// weft/parallel/pipeline/route_search.h -- searches for the best schedule on one route.
//
// Each kind of candidate has a few parameters: the preferences of stages (greedy.h), the slopes of
// lines (slope_orders.h), the idle time of stages (turns.h). A grid search comes first. Then the
// parameters of the best candidate are varied at random, from a fixed seed. With few passes on a
// line, an exhaustive search follows.
#pragma once
#include <limits>
#include <string>
#include <string_view>

#include "weft/parallel/pipeline/greedy.h"
#include "weft/parallel/pipeline/slope_orders.h"
#include "weft/parallel/pipeline/synthesize.h"
#include "weft/parallel/pipeline/turns.h"

namespace weft::pipeline {

class RouteSearch {
 public:
  // REQUIRES: `request` has been checked and outlives the search; `shape` is a line, a loop or a v.
  RouteSearch(const SynthesisRequest& request, Schedule shape);

  // Stops early once a cost of at most `enough` is reached.
  void run(double enough);

  bool found() const { return !orders_.empty(); }
  double cost() const { return cost_; }
  Schedule schedule() const { return to_schedule(shape_, network_, orders_); }
  const std::string& from() const { return from_; }  // the kind of candidate
  std::int64_t tried() const { return tried_; }
  bool is_proven() const { return proven_; }  // no schedule on this route is better

 private:
  struct Line {
    Slopes slopes;
    double patience = 0;
    double window = 0;  // 0: exactly in the order of the lines
  };

  // Each returns whether the candidate is the best so far.
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
  double period_ = 0;  // time of a micro-batch on the slowest stage
  std::int64_t variations_ = 0, tried_ = 0;
  double cost_ = std::numeric_limits<double>::infinity(), other_ = cost_;
  Orders orders_;
  std::string from_;
  std::vector<StagePolicy> policies_;
  Line line_;
  TurnsPolicy turns_;
  std::vector<double> idle_;  // by stage, in the last candidate of turns.h
  bool proven_ = false;
  std::vector<double> begin_;
};

// In forward passes of one whole stage.
double memory_limit(const SynthesisRequest& request, std::size_t stage);

}  // namespace weft::pipeline
