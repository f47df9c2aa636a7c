// weft/planner/step/replan.h -- replan during training for the measured speeds of ranks and links.
//
//   step 100   rank 1 computes 3.1 times as long as planned       ──▶ search with these speeds
//              slice b 31 ms per step, replicate 22 ms                10 % faster or more: all ranks switch
//   step 101   the same weights and moments in their new layouts      nothing is computed twice
//
// Rank 0 checks, searches and proves while the others wait. Checking and searching take at most a
// tenth of the time. After a search without success, speeds must change by half before the next
// one.
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

// Measured over planned time, for computation and for each link that the plan uses. Other links
// keep the values of `before`.
Result<Slowness> slowness_of(const Prepared& prepared, const search::PredictedPlan& plan,
                             const run::RankSpeeds& speeds, const Slowness& before);

struct OtherPlan {
  PlanToTrain plan;
  double seconds = 0, seconds_now = 0;  // per step: with the new plan, with the current one
};

// A proven plan that is faster by 10 % or more under this slowness; nothing if there is none.
Result<std::optional<OtherPlan>> find_other_plan(const Knowledge& state, const Observer& context,
                                                 const Prepared& prepared, const PlanToTrain& now,
                                                 const Slowness& slowness);

class Replanning {
 public:
  // REQUIRES: all of them outlive it.
  Replanning(const Knowledge& state, const Observer& context, const Prepared& prepared)
      : state_(state), context_(context), prepared_(prepared) {}

  // Called after `step` steps. Returns the plan to switch to, as stored with weights, or nothing. A
  // warning names the plan and the reason.
  std::optional<std::string> look(std::int64_t step, const PlanToTrain& now, const run::RankSpeeds& speeds);

 private:
  using Clock = std::chrono::steady_clock;
  Result<std::optional<OtherPlan>> look_for(const PlanToTrain& now, const run::RankSpeeds& speeds);

  const Knowledge& state_;
  const Observer& context_;
  const Prepared& prepared_;
  Slowness looked_at_;      // at the last search
  Clock::time_point next_;  // earliest time of the next check
};

}  // namespace weft::planner
