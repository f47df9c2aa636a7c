// weft/translate/recipe/improve.h -- a better recipe than the one that somebody has, in the same language.
//
//   today ─┐
//   what the planner finds, as far as the language has words for it ─┴─▶ from each of them one change after the
//          other, as long as one makes the step quicker ─▶ the best that was come to ─▶ Improvement
//
// A change halves one degree and doubles another, doubles or halves the micro-batch or the chunks of a stage, shards
// more or less, recomputes more or less, takes the optimizer to the host or back, lets sums of gradients overlap, or
// moves the pipeline inside data. All that is looked at is priced the same way.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/translate/recipe/languages.h"
#include "weft/translate/recipe/price_recipe.h"

namespace weft::recipe {

enum class Language : std::uint8_t { megatron, deepspeed, torchtitan };
std::string_view name(Language language);

Written print(Language language, const Recipe& recipe);

// The recipe as the language has it: what a writer would lose is put otherwise. None where it cannot say it at all.
// `today`: what the user's program already does besides.
std::optional<Recipe> in_words_of(Language language, Recipe recipe, const Recipe& today);

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
  RecipePrice before, after;
};

struct Improvement {
  PricedRecipe today;
  std::optional<PricedRecipe> better;  // none: nothing that was looked at is
  // From today to it: where a plan of the planner came first, that is its first step.
  std::vector<TrailStep> trail;
  // The planner's own plan, where it is quicker than what the language can say, and what it has no words for.
  std::optional<search::PlanInTime> beyond;
  std::vector<std::string> beyond_lost;
  std::int64_t looked_at = 0;
  bool ended_early = false;
};

struct ImproveOptions {
  Language language = Language::megatron;
  std::int64_t most_priced = 400;  // recipes
};

// Fails where today's recipe has no price: it contradicts itself, the cluster or the model.
Result<Improvement> improve(RecipePricer& pricer, const Recipe& today, const ImproveOptions& options);

}  // namespace weft::recipe
