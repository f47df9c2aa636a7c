#include "weft/app/command/anchor_step.h"

#include <algorithm>
#include <cmath>

#include "weft/app/command/recipe_problem.h"
#include "weft/predict/cost/uncertainty.h"

namespace weft::command {

Result<recipe::Anchor> anchor_step(session::Session::State& state, const AnchoredStep& step,
                                   const recipe::StepValues& measured,
                                   const std::function<bool()>& interrupted) {
  language::Catalog& catalog = state.catalog;
  const auto stack = catalog.stacks.find(step.stack.empty() ? "weft" : step.stack);
  if (stack == catalog.stacks.end())
    return language::unknown("stack", {step.stack, {}}, language::names_of(catalog.stacks));
  const auto cluster = catalog.clusters.find(step.cluster);
  WEFT_CHECK(cluster != catalog.clusters.end());

  recipe::AnchorProblem problem;
  problem.stack = stack->second;
  cluster::Cluster with_stack = cluster->second;
  with_stack.stack = problem.stack;
  const double all = cost::step_uncertainty(with_stack).share;
  problem.step_error = problem.stack.step_error > 0 ? problem.stack.step_error : all;
  problem.device_error = std::sqrt(std::max(0.0, all * all - problem.step_error * problem.step_error));
  problem.memory_error = cost::memory_uncertainty(with_stack).share;
  problem.measured = {measured};
  problem.predict = [&](const cluster::Stack& tried) -> Result<std::vector<recipe::StepValues>> {
    catalog.stacks.insert_or_assign(tried.name, tried);
    WEFT_TRY(one, RecipeProblem::make(state, step.model, step.cluster, step.recipe, tried.name, interrupted));
    WEFT_TRY(priced, one->pricer().price(step.recipe));
    return std::vector<recipe::StepValues>{{priced.price.seconds, priced.price.peak_bytes}};
  };
  return recipe::anchor(problem);
}

}  // namespace weft::command
