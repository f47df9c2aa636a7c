// weft/app/session/explain_recipe.h -- EXPLAIN (FORMAT megatron, ..): the plan as a launcher's settings.
//
// The format is a launcher's, such as megatron, deepspeed or torchtitan_toml. If it cannot express the
// plan, the closest one that it can is printed. Warnings state what is lost and the time per step.
//
// Included by app/session and app/command only.
#pragma once
#include "weft/app/session/state.h"
#include "weft/parallel/distribute/distribution.h"
#include "weft/planner/statement/prepare.h"
#include "weft/translate/recipe/recipe.h"

namespace weft::session {

bool is_recipe(language::syntax::Format format);
recipe::Precision precision_of(plan::DType dtype);

// `seconds`: step time of the chosen plan.
Answer explain_recipe(const Session::State& state, const Context& context, const Prepared& prepared,
                      const distribute::Distribution& chosen, double seconds, language::syntax::Format form);

}  // namespace weft::session
