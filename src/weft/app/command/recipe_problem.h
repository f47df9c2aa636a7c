// weft/app/command/recipe_problem.h -- a model, a cluster and a configuration, ready to estimate configurations like it.
//
//   WEFT_TRY(problem, RecipeProblem::make(state, "llama", "pod", recipe, {}));
//   WEFT_TRY(priced, problem->pricer().price(recipe));
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "weft/app/explain/progress.h"
#include "weft/app/session/state.h"
#include "weft/planner/step/statement_pipeline.h"
#include "weft/translate/recipe/recipe_cost.h"

namespace weft::command {

class RecipeProblem {
 public:
  using OnProgress = std::function<void(const explain::Progress&)>;

  // `model` and `cluster` are names of the state's catalog. The recipe gives batch, sequence and precision.
  // `settings`: further ones, such as "memory_reserve = 0".
  // REQUIRES: the state outlives it.
  static Result<std::unique_ptr<RecipeProblem>> make(const session::Session::State& state,
                                                     const std::string& model, const std::string& cluster,
                                                     const recipe::Recipe& recipe,
                                                     const std::string& stack,  // empty: Weft
                                                     const std::function<bool()>& interrupted,
                                                     const OnProgress& on_progress = {},
                                                     std::string_view settings = {});

  const planner::Prepared& prepared() const { return prepared_; }
  recipe::RecipeEstimator& pricer() { return *pricer_; }

 private:
  RecipeProblem() = default;

  planner::Observer context_;
  std::shared_ptr<const language::ParsedText> source_;  // of what is prepared
  planner::Prepared prepared_;
  std::unique_ptr<planner::StatementPipeline> problem_;
  std::unique_ptr<recipe::RecipeEstimator> pricer_;
};

// The precision that a recipe's numbers have in WeftQL.
std::string_view precision_word(recipe::Precision precision);

}  // namespace weft::command
