// weft/translate/recipe/improve.h -- improves a user's recipe, in the same launcher's language.
//
//   today, each single change of it, the known families ──▶ hill climbing from the best of them, one
//          change at a time ──▶ the planner's own plan, with the time that is left ──▶ the answer
//
// A change halves one degree and doubles another, doubles or halves the micro-batch or the chunks
// of a stage, shards more or less, recomputes more or less, moves the optimizer to the host or
// back, overlaps gradient reduction, or moves the pipeline inside data. All candidates are
// estimated in the same way. The answer is the simplest of those that are about as fast as the
// fastest, so it does not depend on the configuration that the search started from.
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
  // The steps from today's recipe; the first is to where the climb started.
  std::vector<TrailStep> trail;
  // Faster than the answer, but less simple, and by no more than predictions can tell.
  std::optional<EstimatedRecipe> fastest;
  double simpler_within = 0;  // share of the step
  // The planner's own plan, if it is faster than any the language can express, and what the
  // language lacks.
  std::optional<search::PipelinePlan> beyond;
  std::vector<std::string> beyond_lost;
  std::int64_t looked_at = 0;
  std::int64_t families = 0, families_left = 0;  // known ones: estimated, and not for lack of time
  bool ended_early = false;
};

struct ImproveOptions {
  Language language = Language::megatron;
  std::int64_t max_estimates = 400;  // of climbing
  double simpler_within = 0;         // share of the step time within which the simplest recipe is the answer
  std::size_t climbs = 3;
  bool searches_plans = true;  // whether the planner's own plan is searched, if time is left
};

// Fails if today's recipe has no estimate: it contradicts itself, the cluster or the model.
Result<Improvement> improve(RecipeEstimator& pricer, const Recipe& today, const ImproveOptions& options);

}  // namespace weft::recipe
