#include "weft/recipe/improve.h"

#include <algorithm>
#include <chrono>
#include <limits>

#include <fmt/format.h>

namespace weft::recipe {
namespace {

// A change that brings less is no change: prices are not that exact.
constexpr double kLeastGain = 0.005;

bool better_price(const RecipePrice& a, const RecipePrice& b) {
  if (a.fits != b.fits) return a.fits;
  if (!a.fits) return a.peak_bytes < (1 - kLeastGain) * b.peak_bytes;
  return a.seconds < (1 - kLeastGain) * b.seconds;
}

class RecipeImprover {
 public:
  RecipeImprover(RecipePricer& pricer, const Recipe& today, const ImproveOptions& options)
      : pricer_(pricer), today_(today), options_(options) {}

  Result<Improvement> run() {
    WEFT_TRY(today, pricer_.price(today_));
    made_.today = today;
    today_ = today.recipe;
    best_ = std::move(today);
    start();
    while (step()) {
    }
    if (!same_plan(best_.recipe, made_.today.recipe)) made_.better = std::move(best_);
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
    const RecipePrice& price = made_.better ? made_.better->price : made_.today.price;
    return price.fits ? price.seconds : std::numeric_limits<double>::infinity();
  }
  bool over() const {
    const search::InTimeProblem& problem = pricer_.problem();
    return std::chrono::steady_clock::now() >= problem.until || pricer_.priced() >= options_.most_priced ||
           (problem.watching.interrupted && problem.watching.interrupted());
  }

  // What the planner finds, put into a recipe, where that is better than today's.
  void start() {
    if (over()) return;
    const search::InTimeProblem& problem = pricer_.problem();
    std::vector<distribute::Distribution> found;
    if (Result<search::ChosenInTime> chosen = search::choose_in_time(problem); chosen.ok()) {
      found.push_back(chosen->distribution);
      if (chosen->megatron) found.push_back(chosen->megatron->distribution);
      planned_ = static_cast<const search::PlanInTime&>(*chosen);
      const GatheredRecipe gathered = gather(chosen->distribution, pricer_.roles(), today_);
      made_.beyond_lost = gathered.lost;
      if (!in_words_of(options_.language, gathered.recipe, today_))
        for (const Change& change : changes(today_, gathered.recipe))
          if (change.what != "tensor" && change.what != "data" && change.what != "micro-batch")
            made_.beyond_lost.push_back(
                fmt::format("{} {}, which the program has as {}", change.what, change.to, change.from));
      const std::int64_t runs = gathered.recipe.pipeline * gathered.recipe.virtual_stages;
      if (pricer_.layers() % runs != 0)
        made_.beyond_lost.push_back(
            fmt::format("stages that are not alike: {} layers in {} runs", pricer_.layers(), runs));
    }
    search::ChooseOptions options;
    options.memory_bytes = problem.memory_bytes;
    options.watching = problem.watching;
    options.until = problem.until;
    if (const auto families =
            search::estimate_families(*problem.plan, *problem.cluster, *problem.machine, options);
        families.ok())
      for (const search::Alternative& family : *families) found.push_back(family.distribution);
    const PricedRecipe before = best_;
    for (const distribute::Distribution& one : found) look_at(gather(one, pricer_.roles(), today_).recipe);
    if (!same_plan(before.recipe, best_.recipe)) record(before);
  }

  bool step() {
    const PricedRecipe before = best_;
    for (const Recipe& next : neighbours(before.recipe)) {
      if (over()) break;
      look_at(next);
    }
    if (same_plan(before.recipe, best_.recipe)) return false;
    record(before);
    return true;
  }

  void look_at(const Recipe& recipe) {
    std::optional<Recipe> said = in_words_of(options_.language, recipe, today_);
    if (!said) return;
    // Launchers cut layers into stages that are alike.
    const auto alike = [&] { return pricer_.layers() % (said->pipeline * said->virtual_stages) == 0; };
    while (said->virtual_stages > 1 && !alike()) --said->virtual_stages;
    if (!alike()) return;
    Result<PricedRecipe> priced = pricer_.price(*said);
    if (priced.ok() && better_price(priced->price, best_.price)) best_ = std::move(*priced);
  }

  void record(const PricedRecipe& before) {
    made_.trail.push_back({changes(before.recipe, best_.recipe), before.price, best_.price});
  }

  RecipePricer& pricer_;
  Recipe today_;
  ImproveOptions options_;
  PricedRecipe best_;
  std::optional<search::PlanInTime> planned_;
  Improvement made_;
};

}  // namespace

Result<Improvement> improve(RecipePricer& pricer, const Recipe& today, const ImproveOptions& options) {
  return RecipeImprover(pricer, today, options).run();
}

}  // namespace weft::recipe
