#include "weft/session/explain_recipe.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "weft/base/units.h"
#include "weft/recipe/improve.h"
#include "weft/session/plan_for.h"
#include "weft/session/time_problem.h"

namespace weft::session {
namespace {

using Form = language::syntax::Format;
using recipe::Language;
using recipe::Recipe;

std::optional<Language> language_of(Form form) {
  switch (form) {
    case Form::megatron: return Language::megatron;
    case Form::deepspeed: return Language::deepspeed;
    case Form::torchtitan: return Language::torchtitan;
    default: return std::nullopt;  // placements are of any plan
  }
}

std::string_view form_name(Form form) {
  const auto language = language_of(form);
  return language ? recipe::name(*language) : "dtensor";
}

recipe::Precision precision_of(plan::DType dtype) {
  switch (dtype) {
    case plan::DType::bf16: return recipe::Precision::bf16;
    case plan::DType::f16: return recipe::Precision::f16;
    default: return recipe::Precision::f32;
  }
}

// What the statement says that no plan does.
Recipe said_by(const Prepared& prepared, const distribute::IndexRoles& roles, std::int64_t rows) {
  Recipe recipe;
  recipe.devices = prepared.ranks;
  recipe.global_batch = rows;
  for (const auto& [name, size] : prepared.named_sizes())
    if (!roles.sequence.empty() && name == roles.sequence.front()) recipe.sequence = size;
  recipe.precision = precision_of(prepared.settings.precision);
  recipe.overlap_reduce = recipe.overlap_gather = true;
  return recipe;
}

struct SaidPlan {
  recipe::PricedRecipe priced;
  std::vector<std::string> lost;
};

// The plan itself where the language can say it; else the best that it can.
Result<SaidPlan> nearest_in(std::optional<Language> language, recipe::RecipePricer& pricer,
                            const recipe::GatheredRecipe& gathered, const Recipe& plain) {
  const std::optional<Recipe> said =
      language ? recipe::in_words_of(*language, gathered.recipe, plain) : gathered.recipe;
  if (said) {
    auto priced = pricer.price(*said);
    if (priced.ok() && (priced->price.fits || !language)) {
      SaidPlan made{std::move(*priced), gathered.lost};
      for (const recipe::Change& change : recipe::changes(gathered.recipe, *said))
        made.lost.push_back(fmt::format("{} {}: {} in its place", change.what, change.from, change.to));
      return made;
    }
    if (!language) return std::move(priced).error();
  }
  WEFT_TRY(found, recipe::improve(pricer, plain, {.language = *language}));
  SaidPlan made{found.better ? std::move(*found.better) : std::move(found.today), gathered.lost};
  for (const recipe::Change& change : recipe::changes(gathered.recipe, made.priced.recipe))
    made.lost.push_back(fmt::format("{} {}: {} in its place", change.what, change.from, change.to));
  return made;
}

}  // namespace

bool is_recipe(Form format) { return language_of(format) || format == Form::dtensor; }

Answer explain_recipe(const Session::State& state, const Context& context, const Prepared& prepared,
                      const distribute::Distribution& chosen, double seconds, Form form) {
  if (!prepared.trains())
    return user_error(fmt::format("FORMAT {} is of TRAIN", form_name(form)), "launchers train",
                      prepared.run->span);
  WEFT_TRY(batch, needed_batch_of(prepared));
  // What a launcher is told to do again is priced by its own words, not by the statement's.
  WEFT_TRY(again, recompute_of(prepared.settings));
  std::optional<Prepared> bare;
  if (!again.is_nothing()) {
    WEFT_TRY(without, without_recompute(state, prepared));
    bare = std::move(without);
  }
  const TimeProblem made(state, &context, bare ? *bare : prepared, batch, /*micro_batches=*/1);
  recipe::RecipePricer pricer(
      made.problem(), [&](const cluster::Cluster& other) { return machine_of(prepared.settings, other); });
  Recipe plain = said_by(prepared, pricer.roles(), batch.rows);
  const recipe::GatheredRecipe gathered = gather(chosen, pricer.roles(), plain);
  plain.zero = 3;
  plain.data = plain.devices;
  plain.micro_batch = std::max<std::int64_t>(batch.rows / plain.devices, 1);
  const auto language = language_of(form);
  WEFT_TRY(said, nearest_in(language, pricer, gathered, plain));
  const recipe::Written written =
      language ? recipe::print(*language, said.priced.recipe) : recipe::print_dtensor(said.priced.recipe);
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
  if (!said.lost.empty())
    state.warnings.add(
        fmt::format("{} has no words for all of {}", form_name(form), print(chosen)),
        user_error(fmt::format("{}", fmt::join(said.lost, "; ")),
                   fmt::format("what is printed takes {} a step, the plan {}: {}",
                               print_seconds(said.priced.price.seconds), print_seconds(seconds),
                               print(said.priced.spread.distribution))));
  return written.text;
}

}  // namespace weft::session
