// weft/planner/search/bucket/quickest_way.h -- of several ways to change a plan the quickest, where it is worth it and fits.
//
//   QuickestWay ways(before, machine, costs, {.least_gain = 0.02});
//   WEFT_TRY(taken, ways.offer(std::move(changed)));   // true: the best so far
#pragma once
#include <optional>
#include <string>

#include "weft/planner/search/distribution/evaluator.h"
#include "weft/predict/cost/step_costs.h"

namespace weft::search {

struct WayOptions {
  double least_gain = 0.02;   // of the step
  double memory_bytes = 0;    // that a rank may take; 0: no limit
  bool is_asked_for = false;  // whatever it gains
};

class QuickestWay {
 public:
  // All must outlive it.
  QuickestWay(const PredictedPlan& before, const Machine& machine, const cost::StepCosts& costs,
              WayOptions options)
      : before_(before), machine_(machine), costs_(costs), options_(options) {}

  // What was offered first stays, if others are no quicker: it is the least trouble.
  Result<bool> offer(distribute::DistributedPlan plan);

  std::optional<PredictedPlan> best;
  std::string why_not;  // where nothing is the best, why the last was not; empty where nothing was offered

 private:
  const PredictedPlan& before_;
  const Machine& machine_;
  const cost::StepCosts& costs_;
  const WayOptions options_;
};

}  // namespace weft::search
