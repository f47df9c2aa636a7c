// weft/app/command/anchor_step.h -- a measured step of a configuration calibrates the stack that runs it.
//
//   WEFT_TRY(anchored, anchor_step(state, {"llama", "pod", recipe, "megatron"}, {.seconds = 1.31}, {}));
//   RecipeProblem::make(state, "llama", "pod", other_recipe, anchored.stack.name, {});
#pragma once
#include <functional>
#include <string>

#include "weft/app/session/state.h"
#include "weft/translate/recipe/anchor.h"
#include "weft/translate/recipe/recipe.h"

namespace weft::command {

struct AnchoredStep {
  std::string model, cluster;  // names of the state's catalog
  recipe::Recipe recipe;
  std::string stack;  // empty: Weft
};

// The derived stack is in the state's catalog afterwards.
Result<recipe::Anchor> anchor_step(session::Session::State& state, const AnchoredStep& step,
                                   const recipe::StepValues& measured,
                                   const std::function<bool()>& interrupted);

}  // namespace weft::command
