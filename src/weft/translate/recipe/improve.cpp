#include "weft/translate/recipe/improve.h"

#include <algorithm>
#include <chrono>
#include <limits>

#include <fmt/format.h>

namespace weft::recipe {
namespace {

// A smaller gain is ignored: estimates are not that accurate.
constexpr double kLeastGain = 0.005;

bool better_price(const RecipeCost& a, const RecipeCost& b) {
  if (a.fits != b.fits) return a.fits;
  if (!a.fits) return a.peak_bytes < (1 - kLeastGain) * b.peak_bytes;
  return a.seconds < (1 - kLeastGain) * b.seconds;
}

class RecipeImprover {
 public:
  RecipeImprover(RecipeEstimator& pricer, const Recipe& today, const ImproveOptions& options)
      : pricer_(pricer), today_(today), options_(options) {}

  Result<Improvement> run() {
    WEFT_TRY(today, pricer_.price(today_));
    made_.today = today;
    today_ = today.recipe;
    Climb best{std::move(today), {}};
    for (EstimatedRecipe& start : starts()) {
      Climb made = climb(std::move(start));
      if (better_price(made.reached.price, best.reached.price)) best = std::move(made);
    }
    if (!same_plan(best.reached.recipe, made_.today.recipe)) {
      made_.better = std::move(best.reached);
      made_.trail = std::move(best.trail);
    }
    made_.looked_at = pricer_.priced();
    made_.ended_early = over();
    if (planned_ && planned_->fits && planned_->priced.seconds < (1 - kLeastGain) * best_seconds())
      made_.beyond = std::move(planned_);
    else
      made_.beyond_lost.clear();
    return std::move(made_);
  }

 private:
  double best_seconds() const {
    const RecipeCost& price = made_.better ? made_.better->price : made_.today.price;
    return price.fits ? price.seconds : std::numeric_limits<double>::infinity();
  }
  bool over() const {
    const search::PipelineProblem& problem = pricer_.problem();
    return std::chrono::steady_clock::now() >= problem.until || pricer_.priced() >= options_.max_estimates ||
           (problem.watching.interrupted && problem.watching.interrupted());
  }

  // A local optimum, and the changes that led to it from today's recipe.
  struct Climb {
    EstimatedRecipe reached;
    std::vector<TrailStep> trail;

    void go_to(EstimatedRecipe next) {
      trail.push_back({changes(reached.recipe, next.recipe), reached.price, next.price});
      reached = std::move(next);
    }
  };

  Climb climb(EstimatedRecipe start) {
    Climb made{made_.today, {}};
    if (!same_plan(start.recipe, made_.today.recipe)) made.go_to(std::move(start));
    while (std::optional<EstimatedRecipe> next = best_neighbour(made.reached)) made.go_to(std::move(*next));
    return made;
  }

  std::optional<EstimatedRecipe> best_neighbour(const EstimatedRecipe& from) {
    std::optional<EstimatedRecipe> best;
    for (const Recipe& next : neighbours(from.recipe)) {
      if (over()) break;
      std::optional<EstimatedRecipe> priced = estimate_expressible(next);
      if (priced && better_price(priced->price, best ? best->price : from.price)) best = std::move(priced);
    }
    return best;
  }

  // Today's recipe and the planner's plans as recipes, best first.
  std::vector<EstimatedRecipe> starts() {
    std::vector<EstimatedRecipe> made = {made_.today};
    if (over()) return made;
    const search::PipelineProblem& problem = pricer_.problem();
    std::vector<distribute::Distribution> found;
    if (Result<search::ChosenPipeline> chosen = search::choose_pipeline(problem); chosen.ok()) {
      found.push_back(chosen->distribution);
      if (chosen->megatron) found.push_back(chosen->megatron->distribution);
      planned_ = static_cast<const search::PipelinePlan&>(*chosen);
      const GatheredRecipe gathered = gather(chosen->distribution, pricer_.roles(), today_);
      made_.beyond_lost = gathered.lost;
      const std::optional<Recipe> said = expressible_in(options_.language, gathered.recipe, today_);
      if (said)
        for (const Change& change : changes(gathered.recipe, *said))
          if (change.what == "schedule" || change.what == "recomputation")
            made_.beyond_lost.push_back(
                fmt::format("{} {}: replaced by {}", change.what, change.from, change.to));
      if (!said)
        for (const Change& change : changes(today_, gathered.recipe))
          if (change.what != "tensor" && change.what != "data" && change.what != "micro-batch")
            made_.beyond_lost.push_back(
                fmt::format("{} {}, which the program sets to {}", change.what, change.to, change.from));
      const std::int64_t runs = gathered.recipe.pipeline * gathered.recipe.virtual_stages;
      if (pricer_.layers() % runs != 0)
        made_.beyond_lost.push_back(
            fmt::format("unequal stages: {} layers in {} virtual stages", pricer_.layers(), runs));
    }
    search::ChooseOptions options;
    options.memory_bytes = problem.memory_bytes;
    options.watching = problem.watching;
    options.until = problem.until;
    if (const auto families =
            search::estimate_families(*problem.plan, *problem.cluster, *problem.machine, options);
        families.ok())
      for (const search::Alternative& family : *families) found.push_back(family.distribution);
    for (const distribute::Distribution& one : found) {
      std::optional<EstimatedRecipe> priced =
          estimate_expressible(gather(one, pricer_.roles(), today_).recipe);
      const auto is_same = [&](const EstimatedRecipe& other) {
        return same_plan(other.recipe, priced->recipe);
      };
      if (priced && std::ranges::none_of(made, is_same)) made.push_back(std::move(*priced));
    }
    std::ranges::stable_sort(made, [](const EstimatedRecipe& a, const EstimatedRecipe& b) {
      if (a.price.fits != b.price.fits) return a.price.fits;
      return a.price.fits ? a.price.seconds < b.price.seconds : a.price.peak_bytes < b.price.peak_bytes;
    });
    return made;
  }

  // Empty if the language cannot express it, or if it contradicts the model or the cluster.
  std::optional<EstimatedRecipe> estimate_expressible(const Recipe& recipe) {
    std::optional<Recipe> said = expressible_in(options_.language, recipe, today_);
    if (!said) return std::nullopt;
    // Launchers split layers into equal stages.
    const auto alike = [&] { return pricer_.layers() % (said->pipeline * said->virtual_stages) == 0; };
    while (said->virtual_stages > 1 && !alike()) --said->virtual_stages;
    if (!alike()) return std::nullopt;
    Result<EstimatedRecipe> priced = pricer_.price(*said);
    return priced.ok() ? std::optional(std::move(*priced)) : std::nullopt;
  }

  RecipeEstimator& pricer_;
  Recipe today_;
  ImproveOptions options_;
  std::optional<search::PipelinePlan> planned_;
  Improvement made_;
};

}  // namespace

Result<Improvement> improve(RecipeEstimator& pricer, const Recipe& today, const ImproveOptions& options) {
  return RecipeImprover(pricer, today, options).run();
}

}  // namespace weft::recipe
