// weft/translate/recipe/recipe_cost.h -- the cost of a recipe's step, with a breakdown.
//
// A step with stages or micro-batches reduces its gradients after its last pass. Without these, it
// reduces them during the backward pass if the recipe overlaps them, else after its only pass.
// Recomputation of some layers is interpolated between none and all: each layer adds the same time
// and saves the same memory.
#pragma once
#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "weft/base/result.h"
#include "weft/parallel/distribute/index_roles.h"
#include "weft/planner/search/pipeline/choose_pipeline.h"
#include "weft/translate/recipe/spread.h"

namespace weft::recipe {

struct RecipeCost {
  double seconds = 0;
  // Parts of the step on the busiest stage: compute, waiting for exchanges within passes, pipeline
  // bubble, and gradient reduction with updates at the end.
  double products = 0, attention = 0;  // of `computing`
  double computing = 0, waiting = 0, bubble = 0, updating = 0;
  double peak_bytes = 0;    // by the allocator, of the fullest device
  double needed_bytes = 0;  // with what the software takes besides
  sim::MemoryByKind memory;
  std::size_t fullest = 0;             // stage
  std::vector<double> bytes_by_stage;  // peaks by the allocator
  bool fits = false;
};

struct EstimatedRecipe {
  Recipe recipe;
  SpreadRecipe spread;
  RecipeCost price;
};

// Estimates recipes for one model, batch and cluster; caches equal distributions.
class RecipeEstimator {
 public:
  // Creates the machine for a cluster that spread() changed because stages are both within and
  // across nodes.
  using MachineOn = std::function<search::Machine(const cluster::Cluster&)>;

  // REQUIRES: everything that `problem` points to outlives it.
  RecipeEstimator(search::PipelineProblem problem, MachineOn machine_on);

  const search::PipelineProblem& problem() const { return problem_; }
  const distribute::IndexRoles& roles() const { return roles_; }
  // The number of consecutive equal layers of the model; 0 if there are none.
  std::int64_t layers() const { return layers_; }

  // Fails if the recipe contradicts itself, the cluster or the model.
  Result<EstimatedRecipe> price(const Recipe& recipe);
  // Ends searches of plans at this time.
  void end_at(std::chrono::steady_clock::time_point until) { problem_.until = until; }
  std::int64_t priced() const { return static_cast<std::int64_t>(known_.size()); }

 private:
  // With recomputation of all layers or none.
  Result<RecipeCost> price_once(const SpreadRecipe& spread, const Recipe& recipe);
  Result<RecipeCost> estimate_pipeline(const SpreadRecipe& spread, const Recipe& recipe);
  Result<RecipeCost> price_at_once(const SpreadRecipe& spread);
  // The fraction of a stage's layers that is recomputed.
  bool is_on_given_cluster(const SpreadRecipe& spread) const;
  double repeated_share(const Recipe& recipe) const;
  // A plan with this recomputation, and its evaluator.
  struct AtOnce {
    std::optional<plan::Graph> again;
    std::optional<search::Evaluator> evaluator;
  };
  Result<search::Evaluator*> at_once(const train::Recompute& what);

  search::PipelineProblem problem_;
  MachineOn machine_on_;
  distribute::IndexRoles roles_;
  TokenSlots slots_;
  std::int64_t layers_ = 0;
  std::map<std::string, AtOnce> at_once_;  // by recomputation
  std::map<std::string, Result<RecipeCost>> known_;
};

}  // namespace weft::recipe
