// weft/app/session/explain_pipeline.h -- EXPLAIN of a plan with stages or micro-batches.
//
// Included by app/session and app/command only.
#pragma once
#include "weft/app/session/explain_distributed.h"
#include "weft/planner/step/plan_step.h"

namespace weft::session {

// `step`: the result of plan_step().
Answer explain_pipeline(const Session::State& state, const Context& context, const Prepared& prepared,
                        explain::Report report, const ExplainOptions& options, StagedStep step);

}  // namespace weft::session
