// weft/planner/search/bucket/fastest_plan.h -- pick the fastest of several variants of a plan.
//
//   FastestPlan ways(before, machine, costs, {.least_gain = 0.02});
//   WEFT_TRY(taken, ways.offer(std::move(changed)));   // true: the best so far
#pragma once
#include <optional>
#include <string>

#include "weft/planner/search/distribution/evaluator.h"
#include "weft/predict/cost/step_costs.h"

namespace weft::search {

struct FastestPlanOptions {
  double least_gain = 0.02;   // share of the step time
  double memory_bytes = 0;    // limit per rank; 0: no limit
  bool is_asked_for = false;  // accept any gain
};

class FastestPlan {
 public:
  // REQUIRES: all arguments outlive it.
  FastestPlan(const PredictedPlan& before, const Machine& machine, const cost::StepCosts& costs,
              FastestPlanOptions options)
      : before_(before), machine_(machine), costs_(costs), options_(options) {}

  // Of equally fast variants, the one offered first is kept. Offer the simplest first.
  Result<bool> offer(distribute::DistributedPlan plan);

  std::optional<PredictedPlan> best;
  std::string why_not;  // without a best: why the last was rejected; empty if nothing was offered

 private:
  const PredictedPlan& before_;
  const Machine& machine_;
  const cost::StepCosts& costs_;
  const FastestPlanOptions options_;
};

}  // namespace weft::search
