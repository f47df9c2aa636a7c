// weft/app/session/explain_torch.h -- EXPLAIN (FORMAT torch): the plan as a Python file for PyTorch.
//
// Unlike a launcher's settings, the file states this plan and no other. Warnings state what it lacks.
//
// Included by app/session only.
#pragma once
#include "weft/app/session/state.h"
#include "weft/parallel/distribute/distribute.h"
#include "weft/planner/statement/prepare.h"

namespace weft::session {

// `plan`: the plan itself, of `chosen`. `seconds`: its step time.
Answer explain_torch(const Session::State& state, const Context& context, const Prepared& prepared,
                     const distribute::DistributedPlan& plan, const distribute::Distribution& chosen,
                     double seconds);

}  // namespace weft::session
