#include "weft/app/session/explain_recipe.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "weft/base/units.h"
#include "weft/planner/search/distribution/fold.h"
#include "weft/planner/step/plan_for.h"
#include "weft/planner/step/statement_pipeline.h"
#include "weft/translate/recipe/improve.h"
#include "weft/translate/recipe/known_families.h"
#include "weft/translate/recipe/model_form.h"
#include "weft/translate/recipe/model_shape.h"

namespace weft::session {
namespace {

using Form = language::syntax::Format;
using recipe::Language;
using recipe::Recipe;

std::optional<Language> language_of(Form form) {
  switch (form) {
    case Form::megatron: return Language::megatron;
    case Form::deepspeed: return Language::deepspeed;
    case Form::torchtitan_toml: return Language::torchtitan;
    case Form::nemo: return Language::nemo;
    case Form::bridge: return Language::bridge;
    case Form::accelerate: return Language::accelerate;
    case Form::maxtext: return Language::maxtext;
    default: return std::nullopt;
  }
}

std::string_view form_name(Form form) {
  return form == Form::torchtitan_toml ? "torchtitan_toml" : recipe::name(*language_of(form));
}

// Recipe fields that come from the statement rather than from a plan.
Recipe recipe_of_statement(const Prepared& prepared, const distribute::IndexRoles& roles, std::int64_t rows) {
  Recipe recipe;
  recipe.devices = prepared.ranks;
  // The innermost of several axes is within a host.
  if (prepared.target.axes.size() > 1) recipe.per_node = prepared.target.axes.back().size;
  recipe.global_batch = rows;
  for (const auto& [name, size] : prepared.named_sizes())
    if (!roles.sequence.empty() && name == roles.sequence.front()) recipe.sequence = size;
  recipe.precision = precision_of(prepared.settings.precision);
  recipe.overlap_reduce = recipe.overlap_gather = true;
  return recipe;
}

// Flags that pretrain_gpt.py needs to start, besides those in the recipe. The data is mocked, and the
// tokenizer only has the vocabulary's size.
void add_megatron_flags(Recipe& recipe, const Prepared& prepared, const plan::Graph& graph,
                        const distribute::IndexRoles& roles) {
  if (recipe.model.heads == 0) return;  // not a model of pretrain_gpt.py
  const recipe::ModelForm form = recipe::model_form(graph, roles, recipe.model);
  for (const auto& [flag, value] : recipe::megatron_form_flags(form, recipe.model))
    recipe.others.emplace_back("--" + flag, value);
  recipe.others.emplace_back("--max-position-embeddings", fmt::format("{}", recipe.sequence));
  recipe.others.emplace_back("--vocab-size", fmt::format("{}", std::exchange(recipe.model.words, 0)));
  recipe.others.emplace_back("--tokenizer-type", "NullTokenizer");
  recipe.others.emplace_back("--mock-data", "");
  recipe.others.emplace_back("--train-iters",
                             fmt::format("{}", prepared.run->steps ? prepared.run->steps->whole : 100));
  recipe.others.emplace_back("--lr", fmt::format("{}", prepared.settings.training.learning_rate));
}

// Recipes whose degrees divide the batch and the layers; most replicas first, then fewest stages.
std::vector<Recipe> plain_recipes(const Recipe& like, std::int64_t layers) {
  std::vector<Recipe> made;
  for (std::int64_t data = like.devices; data >= 1; --data) {
    if (like.devices % data != 0 || like.global_batch % data != 0) continue;
    for (std::int64_t tensor = like.devices / data; tensor >= 1; --tensor) {
      if (like.devices / data % tensor != 0) continue;
      Recipe recipe = like;
      recipe.data = data;
      recipe.tensor = tensor;
      recipe.pipeline = like.devices / data / tensor;
      if (recipe.pipeline > 1 && (layers == 0 || layers % recipe.pipeline != 0)) continue;
      recipe.micro_batch = like.global_batch / data;
      for (const int zero : {3, 1, 0}) {
        if (recipe.pipeline > 1 && zero > 1) continue;
        recipe.zero = zero;
        made.push_back(recipe);
      }
    }
  }
  return made;
}

// The first recipe that fits in memory, else the first that can be estimated.
Result<recipe::EstimatedRecipe> first_plain(Language language, recipe::RecipeEstimator& pricer,
                                            const Recipe& like) {
  constexpr std::size_t kMostTried = 48;
  std::optional<recipe::EstimatedRecipe> found;
  std::optional<Error> why;
  std::vector<Recipe> recipes = plain_recipes(like, pricer.layers());
  recipes.resize(std::min(recipes.size(), kMostTried));
  for (const Recipe& plain : recipes) {
    const auto said = recipe::expressible_in(language, plain, plain);
    if (!said) continue;
    auto priced = pricer.price(*said);
    if (!priced.ok()) {
      why = std::move(priced).error();
    } else if (priced->price.fits) {
      return priced;
    } else if (!found) {
      found = std::move(*priced);
    }
  }
  if (found) return std::move(*found);
  return user_error(
      fmt::format("{} cannot express any plan of this model on {} devices{}{}", recipe::name(language),
                  like.devices, why ? ": " : "", why ? why->message : std::string()),
      "FORMAT plan prints the plan itself, FORMAT torch a Python file that applies it");
}

struct ExpressedPlan {
  recipe::EstimatedRecipe priced;
  std::vector<std::string> lost;
};

// The plan itself if the language can express it, and if it fits or was asked for; else the best plan that the language
// can express.
Result<ExpressedPlan> nearest_in(Language language, recipe::RecipeEstimator& pricer,
                                 const recipe::GatheredRecipe& gathered, const Recipe& plain, bool is_asked) {
  std::optional<Recipe> said = recipe::expressible_in(language, gathered.recipe, plain);
  // Launchers need the same number of layers in every stage; Megatron takes a layout of others.
  const auto alike = [&](const Recipe& one) {
    return pricer.layers() % (one.pipeline * one.virtual_stages) == 0;
  };
  if (said && language == Language::megatron && !alike(*said))
    if (auto layers = recipe::launcher_layers(pricer.layers(), said->pipeline * said->virtual_stages))
      said->stage_layers = *std::move(layers);
  if (said && (alike(*said) || !said->stage_layers.empty())) {
    auto priced = pricer.price(*said);
    if (priced.ok() && (priced->price.fits || is_asked)) {
      ExpressedPlan made{std::move(*priced), gathered.lost};
      for (const recipe::Change& change : recipe::changes(gathered.recipe, *said))
        made.lost.push_back(fmt::format("{} {}: replaced by {}", change.what, change.from, change.to));
      return made;
    }
  }
  WEFT_TRY(first, first_plain(language, pricer, plain));
  WEFT_TRY(found, recipe::improve(pricer, first.recipe, {.language = language, .searches_plans = false}));
  ExpressedPlan made{found.better ? std::move(*found.better) : std::move(found.today), gathered.lost};
  for (const recipe::Change& change : recipe::changes(gathered.recipe, made.priced.recipe))
    made.lost.push_back(fmt::format("{} {}: replaced by {}", change.what, change.from, change.to));
  return made;
}

}  // namespace

recipe::Precision precision_of(plan::DType dtype) {
  switch (dtype) {
    case plan::DType::bf16: return recipe::Precision::bf16;
    case plan::DType::f16: return recipe::Precision::f16;
    default: return recipe::Precision::f32;
  }
}

bool is_recipe(Form format) { return language_of(format).has_value(); }

Answer explain_recipe(const Session::State& state, const Context& context, const Prepared& prepared,
                      const distribute::Distribution& chosen, double seconds, Form form) {
  if (!prepared.trains())
    return user_error(fmt::format("FORMAT {} needs TRAIN", form_name(form)),
                      "launcher settings describe training", prepared.run->span);
  WEFT_TRY(batch, needed_batch_of(prepared));
  // The recipe states recomputation in its own terms, so estimates start without the statement's
  // setting.
  WEFT_TRY(again, recompute_of(prepared.settings));
  std::optional<Prepared> bare;
  if (!again.is_nothing()) {
    WEFT_TRY(without, without_recompute(state, prepared));
    bare = std::move(without);
  }
  const StatementPipeline made(state, &context, bare ? *bare : prepared, batch, /*micro_batches=*/1);
  recipe::RecipeEstimator pricer(
      made.problem(), [&](const cluster::Cluster& other) { return machine_of(prepared.settings, other); });
  Recipe plain = recipe_of_statement(prepared, pricer.roles(), batch.rows);
  const std::vector<std::int64_t> iterations = search::layers_of_nodes(*pricer.problem().plan);
  const std::int64_t layers = iterations.empty() ? 0 : std::ranges::max(iterations) + 1;
  plain.model = recipe::model_shape(*pricer.problem().plan, pricer.roles(), layers);
  if (form == Form::megatron) add_megatron_flags(plain, prepared, *pricer.problem().plan, pricer.roles());
  const recipe::GatheredRecipe gathered = gather(chosen, pricer.roles(), plain);
  // The program is yet to be written, so it can checkpoint its layers as the plan does.
  if (form == Form::deepspeed && gathered.recipe.recompute == recipe::Recompute::full)
    plain.recompute = recipe::Recompute::full;
  plain.data = plain.devices;
  const Language language = *language_of(form);
  WEFT_TRY(said, nearest_in(language, pricer, gathered, plain, !prepared.settings.distribution.empty()));
  const recipe::Written written = recipe::print(language, said.priced.recipe);
  said.lost.insert(said.lost.end(), written.lost.begin(), written.lost.end());
  if (context.format == Format::json) {
    const nlohmann::ordered_json json = {{"format", form_name(form)},
                                         {"plan", print(chosen)},
                                         {"step_seconds", seconds},
                                         {"configuration", written.text},
                                         {"configuration_plan", print(said.priced.spread.distribution)},
                                         {"configuration_seconds", said.priced.price.seconds},
                                         {"lost", said.lost}};
    return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  }
  if (!said.priced.price.fits)
    state.warnings.add(
        fmt::format("{} does not fit", print(said.priced.spread.distribution)),
        user_error(fmt::format("needs {} per device, {} usable", print_bytes(said.priced.price.needed_bytes),
                               print_bytes(pricer.problem().memory_bytes))));
  if (!said.lost.empty())
    state.warnings.add(
        fmt::format("{} cannot express all of {}", form_name(form), print(chosen)),
        user_error(fmt::format("{}", fmt::join(said.lost, "; ")),
                   fmt::format("the printed settings take {} per step, the plan {}: {}",
                               print_seconds(said.priced.price.seconds), print_seconds(seconds),
                               print(said.priced.spread.distribution))));
  return written.text;
}

}  // namespace weft::session
