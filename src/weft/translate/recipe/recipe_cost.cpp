#include "weft/translate/recipe/recipe_cost.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "weft/parallel/train/local_norms.h"
#include "weft/plan/ops/operators.h"
#include "weft/planner/search/distribution/fold.h"
#include "weft/planner/search/pipeline/stage_cost_cache.h"

namespace weft::recipe {
namespace {

double between(double none, double all, double share) { return none + share * (all - none); }

RecipeCost between(const RecipeCost& none, const RecipeCost& all, double share) {
  RecipeCost price = all;
  for (double RecipeCost::*const field :
       {&RecipeCost::seconds, &RecipeCost::products, &RecipeCost::attention, &RecipeCost::computing,
        &RecipeCost::waiting, &RecipeCost::bubble, &RecipeCost::updating, &RecipeCost::peak_bytes,
        &RecipeCost::needed_bytes})
    price.*field = between(none.*field, all.*field, share);
  for (std::size_t s = 0; s < price.bytes_by_stage.size() && s < none.bytes_by_stage.size(); ++s)
    price.bytes_by_stage[s] = between(none.bytes_by_stage[s], all.bytes_by_stage[s], share);
  for (double sim::MemoryByKind::*const field :
       {&sim::MemoryByKind::activations, &sim::MemoryByKind::scratch})
    price.memory.*field = between(none.memory.*field, all.memory.*field, share);
  return price;
}

TokenSlots slots_of(const plan::Graph& plan, const distribute::IndexRoles& roles) {
  TokenSlots sent;
  const auto add = [](std::vector<std::string>& list, const std::string& index) {
    if (std::ranges::find(list, index) == list.end()) list.push_back(index);
  };
  for (std::size_t n = 0; n < plan.node_count() && !roles.expert.empty(); ++n) {
    const plan::NodeView node = plan.view(plan::NodeId(n));
    if (&node.op() != &ops::split()) continue;
    const plan::Type into = node.result_type(0), from = node.input_type(0);
    const bool by_expert = std::ranges::any_of(into.dims, [&](const plan::Dim& dim) {
      return std::string(node.text(dim.index)) == roles.expert.front();
    });
    if (!by_expert) continue;
    for (const plan::Dim& dim : from.dims) {
      const std::string index(node.text(dim.index));
      const bool is_batch = std::ranges::find(roles.batch, index) != roles.batch.end();
      if (!into.has(dim.index))
        add(sent.slots, index);
      else if (!is_batch)
        add(sent.widths, index);
    }
  }
  return sent;
}

}  // namespace

RecipeEstimator::RecipeEstimator(search::PipelineProblem problem, MachineOn machine_on)
    : problem_(std::move(problem)),
      machine_on_(std::move(machine_on)),
      roles_(distribute::index_roles(*problem_.plan)),
      slots_(slots_of(*problem_.plan, roles_)),
      layers_(search::repeated_layers(*problem_.plan)) {
  // The statistics of batch norms depend on how many rows a pass has.
  if (train::count_batch_norms(*problem_.plan) == 0)
    problem_.cache = std::make_shared<search::StageCostCache>();
}

Result<EstimatedRecipe> RecipeEstimator::price(const Recipe& recipe) {
  const std::int64_t devices = problem_.cluster->devices();
  WEFT_TRY_STATUS(check(recipe, devices));
  EstimatedRecipe made{recipe, {}, {}};
  made.recipe.devices = devices;
  made.recipe.data = made.recipe.data_degree();
  if (made.recipe.micro_batch == 0 && made.recipe.global_batch > 0) {
    if (made.recipe.global_batch % made.recipe.data != 0)
      return user_error(fmt::format("data does not divide the global batch: {} and {}", made.recipe.data,
                                    made.recipe.global_batch));
    made.recipe.micro_batch = made.recipe.global_batch / made.recipe.data;
  }
  Recipe launched = made.recipe;
  if (problem_.cluster->stack.gathers_once > 0 && launched.zero == 3 && launched.pipeline > 1)
    launched.zero = 2;
  WEFT_TRY(spread_out, spread(launched, roles_, *problem_.cluster, slots_));
  made.spread = std::move(spread_out);
  if (launched.zero != made.recipe.zero)
    made.spread.notes.push_back("with stages, parameters are estimated as gathered once per step and kept");
  WEFT_TRY(price, price_once(made.spread, made.recipe));
  made.price = price;
  if (const double share = repeated_share(made.recipe); share < 1) {
    SpreadRecipe without = made.spread;
    without.distribution.recompute = {};
    WEFT_TRY(none, price_once(without, made.recipe));
    made.price = between(none, price, share);
    made.spread.notes.push_back(
        fmt::format("{} layers per stage are recomputed: estimated as {:.0f} % of all",
                    recipe.recompute_layers, 100 * share));
  }
  made.price.fits = problem_.memory_bytes <= 0 || made.price.needed_bytes <= problem_.memory_bytes;
  return made;
}

double RecipeEstimator::repeated_share(const Recipe& recipe) const {
  if (recipe.recompute != Recompute::full || recipe.recompute_layers == 0 || layers_ == 0) return 1;
  // Megatron counts them per virtual stage.
  const std::int64_t runs = recipe.pipeline * recipe.virtual_stages;
  return std::min(1.0, static_cast<double>(recipe.recompute_layers * runs) / static_cast<double>(layers_));
}

// Otherwise spread() moved ranks to the outer axis.
bool RecipeEstimator::is_on_given_cluster(const SpreadRecipe& spread) const {
  return spread.cluster.axes.front().size == problem_.cluster->axes.front().size;
}

Result<RecipeCost> RecipeEstimator::price_once(const SpreadRecipe& spread, const Recipe& recipe) {
  const bool overlaps = recipe.overlap_reduce;
  const distribute::Distribution& distribution = spread.distribution;
  // With another stack the stages' estimate knows what overlaps.
  const bool is_weft = problem_.cluster->stack.is_weft();
  const bool at_once = is_weft && overlaps && is_on_given_cluster(spread) &&
                       !distribute::is_pipelined(distribution) && !distribution.offload;
  const std::string key =
      fmt::format("{} on {}{} layers {}", print(distribution), spread.cluster.axes.front().size,
                  overlaps ? " overlapped" : "", fmt::join(recipe.stage_layers, " "));
  auto known = known_.find(key);
  if (known == known_.end())
    known = known_.emplace(key, at_once ? price_at_once(spread) : estimate_pipeline(spread, recipe)).first;
  return known->second;
}

Result<search::Evaluator*> RecipeEstimator::at_once(const train::Recompute& what) {
  AtOnce& made = at_once_[train::print(what)];
  if (!made.evaluator) {
    // If problem_.recomputed, the plan already includes the recomputation that the user requested.
    if (!what.is_nothing() && !problem_.recomputed) {
      WEFT_TRY(again, train::recompute(*problem_.plan, what));
      made.again = std::move(again.graph);
    }
    made.evaluator.emplace(made.again ? *made.again : *problem_.plan, *problem_.machine, nullptr,
                           problem_.watching);
  }
  return &*made.evaluator;
}

Result<RecipeCost> RecipeEstimator::estimate_pipeline(const SpreadRecipe& spread, const Recipe& recipe) {
  search::PipelineProblem problem = problem_;
  problem.overlaps_reduce = problem.overlaps_gather = recipe.overlap_reduce;
  problem.whole_layers = true;
  problem.run_layers = recipe.stage_layers;
  search::Machine machine;
  if (!is_on_given_cluster(spread)) {
    machine = machine_on_(spread.cluster);
    problem.cluster = &spread.cluster;
    problem.machine = &machine;
  }
  WEFT_TRY(found, search::estimate_given(problem, spread.distribution));
  const search::PipelineEstimate& priced = found.priced;
  RecipeCost price;
  price.seconds = priced.seconds;
  for (const search::StageCost& stage : priced.stages)
    if (stage.computing > price.computing) {
      price.computing = stage.computing;
      price.products = stage.products * static_cast<double>(priced.schedule.micro_batches);
      price.attention = stage.attention * static_cast<double>(priced.schedule.micro_batches);
    }
  price.computing *= static_cast<double>(priced.schedule.micro_batches);
  price.bubble = priced.bubble();
  price.updating = priced.updating;
  price.waiting = std::max(0.0, price.seconds - price.computing - price.bubble - price.updating);
  price.peak_bytes = priced.peak_bytes;
  price.needed_bytes = priced.needed_bytes;
  price.fullest = priced.fullest;
  price.memory = priced.stages[priced.fullest].memory;
  for (const search::StageCost& stage : priced.stages) price.bytes_by_stage.push_back(stage.memory.total());
  return price;
}

// Without stages and micro-batches, a step can reduce gradients while it computes; the evaluator
// models this.
Result<RecipeCost> RecipeEstimator::price_at_once(const SpreadRecipe& spread) {
  WEFT_TRY(evaluator, at_once(spread.distribution.recompute));
  WEFT_TRY(found, evaluator->estimate(spread.distribution));
  RecipeCost price;
  price.seconds = found.seconds;
  price.waiting = found.exposed_communication_seconds;
  price.computing = std::max(0.0, found.seconds - price.waiting);
  price.peak_bytes = price.needed_bytes = found.peak_bytes;
  price.memory = found.memory;
  price.bytes_by_stage = {found.peak_bytes};
  return price;
}

}  // namespace weft::recipe
