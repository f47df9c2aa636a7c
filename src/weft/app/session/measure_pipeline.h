// weft/app/session/measure_pipeline.h -- EXPLAIN ANALYZE of a plan with stages or micro-batches, by pass.
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

// One rank's program and measurement.
struct PipelineRank {
  std::int32_t rank = 0, stage = 0;
  std::vector<pipeline::Pass> passes;  // by turn of its program
  std::shared_ptr<const program::Program> program;
  program::Timeline timeline;         // of the median step
  std::vector<pipeline::Slot> slots;  // of the median step, by pass
};

struct PipelineMeasurement {
  explain::Measured step;
  std::vector<PipelineRank> ranks;
};

// Runs the plan for some steps on this machine, on the given data or on made-up numbers. If the
// ranks do not share processors, saves unit times in the statistics. REQUIRES: `plan` is from
// plan_pipeline().
Result<PipelineMeasurement> measure_pipeline(const Session::State& state, const Context& context,
                                             const Prepared& prepared, const search::Choice& plan);

}  // namespace weft::session
