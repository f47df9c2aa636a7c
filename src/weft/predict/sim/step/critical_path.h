// weft/predict/sim/step/critical_path.h -- the critical path of a step, and what bounds the step.
//
// Traced backwards from the task that ends last. Of all that a task waited for (its stream, other
// tasks, the ranks of its collective), the one that ended last is on the path.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "weft/plan/graph/layout.h"
#include "weft/predict/sim/step/predict.h"
#include "weft/predict/sim/step/program_tasks.h"
#include "weft/predict/sim/step/rank_classes.h"
#include "weft/predict/sim/step/step_run.h"

namespace weft::sim {

// In order of time. REQUIRES: `run` has run and its times are still there.
std::vector<CriticalTask> critical_path(const StepRun& run, std::span<const ProgramTasks* const> ranks,
                                        const Meetings& meetings);

// "compute: 71 % of the step" or "communication on gpu: 54 % of the step": the largest share of the
// path.
std::string bound_of(const StepRun& run, std::span<const ProgramTasks* const> ranks,
                     std::span<const CriticalTask> path, const plan::Mesh& mesh);

}  // namespace weft::sim
