// weft/app/session/measure_in_time.h -- EXPLAIN ANALYZE of a plan in time: its steps, really run, pass by pass.
//
// Included by app/session and app/command only.
#pragma once
#include <memory>
#include <vector>

#include "weft/app/explain/report.h"
#include "weft/app/session/state.h"
#include "weft/parallel/pipeline/unroll.h"
#include "weft/planner/search/optimize.h"
#include "weft/planner/statement/prepare.h"
#include "weft/program/tasks/program.h"
#include "weft/program/tasks/timeline.h"

namespace weft::session {

// What one rank ran.
struct RankInTime {
  std::int32_t rank = 0, stage = 0;
  std::vector<pipeline::Pass> passes;  // by turn of its program
  std::shared_ptr<const program::Program> program;
  program::Timeline timeline;         // of the step that was the median
  std::vector<pipeline::Slot> slots;  // of it, by pass
};

struct MeasurementInTime {
  explain::Measured step;
  std::vector<RankInTime> ranks;
};

// Runs the plan for some steps on as many ranks of this machine, on the data given or on made-up numbers. Where each
// rank has processors of its own, what its units took is added to the statistics. REQUIRES: as plan_in_time made it.
Result<MeasurementInTime> measure_in_time(const Session::State& state, const Context& context,
                                          const Prepared& prepared, const search::Choice& plan);

}  // namespace weft::session
