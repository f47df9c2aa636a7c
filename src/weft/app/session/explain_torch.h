// weft/app/session/explain_torch.h -- EXPLAIN (FORMAT torch) and (FORMAT torchtitan): Python files.
//
// FORMAT torch applies the plan to a model with PyTorch alone, FORMAT torchtitan configures torchtitan.
// Unlike a launcher's settings, the files state this plan and no other. Warnings state what they lack.
//
// Included by app/session only.
#pragma once
#include "weft/app/session/state.h"
#include "weft/parallel/distribute/distribute.h"
#include "weft/planner/statement/prepare.h"

namespace weft::session {

bool is_torch(language::syntax::Format form);

// `plan`: the plan itself, of `chosen`; null if it cannot be built, which is enough for torchtitan.
// `seconds`: its step time. `form`: torch or torchtitan.
Answer explain_torch(const Session::State& state, const Context& context, const Prepared& prepared,
                     const distribute::DistributedPlan* plan, const distribute::Distribution& chosen,
                     double seconds, language::syntax::Format form);

}  // namespace weft::session
