// weft/translate/recipe/price_recipe.h -- what a step takes by a recipe, on a cluster, and what that time is spent with.
//
// A step of stages or micro-batches sums its gradients after its last pass. One that is neither sums them while it
// computes, where the recipe overlaps them, and after its only pass where it does not. Layers that are done again in
// part are priced between none and all of them: each takes the same time and gives the same room.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "weft/base/result.h"
#include "weft/parallel/distribute/index_roles.h"
#include "weft/planner/search/pipeline/choose_in_time.h"
#include "weft/translate/recipe/spread.h"

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
  // Of all layers alike.
  Result<RecipePrice> price_once(const SpreadRecipe& spread, bool overlaps);
  Result<RecipePrice> price_in_time(const SpreadRecipe& spread);
  Result<RecipePrice> price_at_once(const SpreadRecipe& spread);
  // The part of a stage's layers that is done again.
  double repeated_share(const Recipe& recipe) const;
  // A plan that does this again, and its estimates.
  struct AtOnce {
    std::optional<plan::Graph> again;
    std::optional<search::Evaluator> evaluator;
  };
  Result<search::Evaluator*> at_once(const train::Recompute& what);

  search::InTimeProblem problem_;
  MachineOn machine_on_;
  distribute::IndexRoles roles_;
  std::int64_t layers_ = 0;
  std::map<std::string, AtOnce> at_once_;  // by what is done again
  std::map<std::string, Result<RecipePrice>> known_;
};

}  // namespace weft::recipe
