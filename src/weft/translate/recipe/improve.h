// weft/translate/recipe/improve.h -- improves a user's recipe, in the same launcher's language.
//
//   today ─┐
//   the planner's plans, as far as the language can express them ─┴─▶ hill climbing from each of them, one
//          change at a time, while the step gets faster ─▶ the best recipe found ─▶ Improvement
//
// A change halves one degree and doubles another, doubles or halves the micro-batch or the chunks
// of a stage, shards more or less, recomputes more or less, moves the optimizer to the host or
// back, overlaps gradient reduction, or moves the pipeline inside data. All candidates are
// estimated in the same way.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/translate/recipe/language.h"
#include "weft/translate/recipe/recipe_cost.h"

namespace weft::recipe {

// "tensor 8, pipeline 2, data 4, micro-batch 1 (16 per step), ZeRO 1"
std::string describe(const Recipe& recipe);

struct Change {
  std::string what, from, to;  // "tensor", "8", "4"
};
std::vector<Change> changes(const Recipe& from, const Recipe& to);

// All recipes that are one change away.
std::vector<Recipe> neighbours(const Recipe& recipe);

struct TrailStep {
  std::vector<Change> changes;
  RecipeCost before, after;
};

struct Improvement {
  EstimatedRecipe today;
  std::optional<EstimatedRecipe> better;  // empty: no candidate is better
  // The steps from today's recipe. If the climb started from a planner's plan, that is the first
  // step.
  std::vector<TrailStep> trail;
  // The planner's own plan, if it is faster than any the language can express, and what the
  // language lacks.
  std::optional<search::PipelinePlan> beyond;
  std::vector<std::string> beyond_lost;
  std::int64_t looked_at = 0;
  bool ended_early = false;
};

struct ImproveOptions {
  Language language = Language::megatron;
  std::int64_t max_estimates = 400;  // recipes
};

// Fails if today's recipe has no estimate: it contradicts itself, the cluster or the model.
Result<Improvement> improve(RecipeEstimator& pricer, const Recipe& today, const ImproveOptions& options);

}  // namespace weft::recipe
