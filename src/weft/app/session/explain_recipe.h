// weft/app/session/explain_recipe.h -- EXPLAIN (FORMAT megatron | deepspeed | torchtitan | dtensor): the chosen plan in the
// words of those who would run it.
//
// Where the language lacks words for the plan, the nearest that it can say is the answer, and warnings say what
// that lacks and what it takes.
//
// Included by app/session and app/command only.
#pragma once
#include "weft/app/session/state.h"
#include "weft/parallel/distribute/distribution.h"
#include "weft/planner/statement/prepare.h"

namespace weft::session {

bool is_recipe(language::syntax::Format format);

// `seconds`: what a step of the chosen plan takes.
Answer explain_recipe(const Session::State& state, const Context& context, const Prepared& prepared,
                      const distribute::Distribution& chosen, double seconds, language::syntax::Format form);

}  // namespace weft::session
