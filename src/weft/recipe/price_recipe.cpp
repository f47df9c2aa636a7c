#include "weft/recipe/price_recipe.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace weft::recipe {

RecipePricer::RecipePricer(search::InTimeProblem problem, MachineOn machine_on)
    : problem_(std::move(problem)),
      machine_on_(std::move(machine_on)),
      roles_(distribute::index_roles(*problem_.plan)),
      layers_(search::PricedParts(*problem_.plan).layers()),
      at_once_(*problem_.plan, *problem_.machine, nullptr, problem_.watching) {}

Result<PricedRecipe> RecipePricer::price(const Recipe& recipe) {
  const std::int64_t devices = problem_.cluster->devices();
  WEFT_TRY_STATUS(check(recipe, devices));
  PricedRecipe made{recipe, {}, {}};
  made.recipe.devices = devices;
  made.recipe.data = made.recipe.data_degree();
  if (made.recipe.micro_batch == 0 && made.recipe.global_batch > 0) {
    if (made.recipe.global_batch % made.recipe.data != 0)
      return user_error(fmt::format("data does not divide the global batch: {} and {}", made.recipe.data,
                                    made.recipe.global_batch));
    made.recipe.micro_batch = made.recipe.global_batch / made.recipe.data;
  }
  WEFT_TRY(spread_out, spread(made.recipe, roles_, *problem_.cluster));
  made.spread = std::move(spread_out);
  const std::string key =
      fmt::format("{} on {}", print(made.spread.distribution), made.spread.cluster.axes.front().size);
  auto known = known_.find(key);
  if (known == known_.end())
    known = known_
                .emplace(key, distribute::is_in_time(made.spread.distribution) ? price_in_time(made.spread)
                                                                               : price_at_once(made.spread))
                .first;
  if (!known->second.ok()) return known->second.error();
  made.price = *known->second;
  made.price.fits = problem_.memory_bytes <= 0 || made.price.peak_bytes <= problem_.memory_bytes;
  return made;
}

Result<RecipePrice> RecipePricer::price_in_time(const SpreadRecipe& spread) {
  search::InTimeProblem problem = problem_;
  const bool same = spread.cluster.axes.front().size == problem_.cluster->axes.front().size;
  search::Machine machine;
  if (!same) {
    machine = machine_on_(spread.cluster);
    problem.cluster = &spread.cluster;
    problem.machine = &machine;
  }
  WEFT_TRY(found, search::price_given(problem, spread.distribution));
  const search::PricedInTime& priced = found.priced;
  RecipePrice price;
  price.seconds = priced.seconds;
  for (const search::StageCost& stage : priced.stages)
    price.computing = std::max(price.computing, stage.computing);
  price.computing *= static_cast<double>(priced.schedule.micro_batches);
  price.bubble = priced.bubble();
  price.updating = priced.updating;
  price.waiting = std::max(0.0, price.seconds - price.computing - price.bubble - price.updating);
  price.peak_bytes = priced.peak_bytes;
  price.fullest = priced.fullest;
  price.memory = priced.stages[priced.fullest].memory;
  return price;
}

// A step that is not cut in time sums gradients while it computes: the ordinary estimate sees that.
Result<RecipePrice> RecipePricer::price_at_once(const SpreadRecipe& spread) {
  WEFT_TRY(found, at_once_.estimate(spread.distribution));
  RecipePrice price;
  price.seconds = found.seconds;
  price.waiting = found.exposed_communication_seconds;
  price.computing = std::max(0.0, found.seconds - price.waiting);
  price.peak_bytes = found.peak_bytes;
  price.memory = found.memory;
  return price;
}

}  // namespace weft::recipe
