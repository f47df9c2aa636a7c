// weft/recipe/price_recipe.h -- what a step takes by a recipe, on a cluster, and what that time is spent with.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "weft/base/result.h"
#include "weft/distribute/index_roles.h"
#include "weft/recipe/spread.h"
#include "weft/search/pipeline/choose_in_time.h"

namespace weft::recipe {

struct RecipePrice {
  double seconds = 0;
  // Of the step: the busiest stage computes, waits for exchanges within its passes, has nothing to do, and at the
  // end sums gradients and updates.
  double computing = 0, waiting = 0, bubble = 0, updating = 0;
  double peak_bytes = 0;
  sim::MemoryByKind memory;
  std::size_t fullest = 0;  // stage
  bool fits = false;
};

struct PricedRecipe {
  Recipe recipe;
  SpreadRecipe spread;
  RecipePrice price;
};

// Prices recipes for one model, batch and cluster; the same distribution once.
class RecipePricer {
 public:
  // Machines of clusters whose stages lie within nodes and across them are made by `machine_on`.
  using MachineOn = std::function<search::Machine(const cluster::Cluster&)>;

  // REQUIRES: what the problem points to outlives it.
  RecipePricer(search::InTimeProblem problem, MachineOn machine_on);

  const search::InTimeProblem& problem() const { return problem_; }
  const distribute::IndexRoles& roles() const { return roles_; }
  // That are alike in the model, one after the other; 0: it has none.
  std::int64_t layers() const { return layers_; }

  // Fails where the recipe contradicts itself, the cluster or the model.
  Result<PricedRecipe> price(const Recipe& recipe);
  std::int64_t priced() const { return static_cast<std::int64_t>(known_.size()); }

 private:
  Result<RecipePrice> price_in_time(const SpreadRecipe& spread);
  Result<RecipePrice> price_at_once(const SpreadRecipe& spread);

  search::InTimeProblem problem_;
  MachineOn machine_on_;
  distribute::IndexRoles roles_;
  std::int64_t layers_ = 0;
  search::Evaluator at_once_;
  std::map<std::string, Result<RecipePrice>> known_;
};

}  // namespace weft::recipe
