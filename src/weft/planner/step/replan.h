// weft/planner/step/replan.h -- a plan chosen again while training goes on, for the speeds that ranks and links have now.
//
//   step 100   rank 1 computes 3.1 times as long as planned       ──▶ a search with these speeds
//              slice b 31 ms a step, replicate 22 ms                  better by a tenth or more: all ranks change
//   step 101   the same weights and moments in their new layouts      nothing is computed twice
//
// Rank 0 looks, searches and proves; meanwhile the others wait. Looking and searching take a tenth of the time
// at most, and where nothing was found speeds must be others by half before there is another search.
#pragma once
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "weft/planner/statement/knowledge.h"
#include "weft/planner/step/kept_plan.h"
#include "weft/planner/target/slowness.h"
#include "weft/runtime/run/step_times.h"

namespace weft::planner {

// How much longer than planned the ranks took, as far as the plan shows it; of links that it does not use, as
// `before` has it.
Result<Slowness> slowness_of(const Prepared& prepared, const search::PredictedPlan& plan,
                             const run::RankSpeeds& speeds, const Slowness& before);

struct OtherPlan {
  PlanToTrain plan;
  double seconds = 0, seconds_now = 0;  // of a step, with and without it
};

// A plan that is better by a tenth or more where everything takes so much longer, and proven; nothing where there
// is none.
Result<std::optional<OtherPlan>> find_other_plan(const Knowledge& state, const Observer& context,
                                                 const Prepared& prepared, const PlanToTrain& now,
                                                 const Slowness& slowness);

class Replanning {
 public:
  // REQUIRES: all of them outlive it.
  Replanning(const Knowledge& state, const Observer& context, const Prepared& prepared)
      : state_(state), context_(context), prepared_(prepared) {}

  // After `step` steps. The plan to go on with, as weights keep it; nothing: this one. A warning says which and why.
  std::optional<std::string> look(std::int64_t step, const PlanToTrain& now, const run::RankSpeeds& speeds);

 private:
  using Clock = std::chrono::steady_clock;
  Result<std::optional<OtherPlan>> look_for(const PlanToTrain& now, const run::RankSpeeds& speeds);

  const Knowledge& state_;
  const Observer& context_;
  const Prepared& prepared_;
  Slowness looked_at_;      // when a plan was last searched for
  Clock::time_point next_;  // not before
};

}  // namespace weft::planner
