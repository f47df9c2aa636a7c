#include "weft/app/command/recipe_problem.h"

#include <fmt/format.h>

#include "weft/app/session/reply.h"
#include "weft/language/bind.h"
#include "weft/parallel/distribute/index_roles.h"
#include "weft/planner/step/plan_for.h"

namespace weft::command {
namespace {

struct PreparedText {
  planner::Prepared prepared;
  std::shared_ptr<const language::ParsedText> source;
};

Result<PreparedText> prepare_text(const session::Session::State& state, const std::string& text,
                                  const std::function<bool()>& interrupted) {
  WEFT_TRY(parsed, language::parse_and_keep(text));
  auto prepared =
      planner::prepare(state, *parsed->script.statements.front()->as<language::syntax::Explain>().run,
                       planner::Purpose::plan, interrupted);
  // The user did not write this statement, so positions in it would not help.
  if (!prepared.ok()) return user_error(prepared.error().message, prepared.error().hint);
  return PreparedText{std::move(*prepared), parsed};
}

}  // namespace

std::string_view precision_word(recipe::Precision precision) {
  switch (precision) {
    case recipe::Precision::f32: return "f32";
    case recipe::Precision::f16: return "f16";
    case recipe::Precision::bf16:
    case recipe::Precision::fp8:
    case recipe::Precision::nvfp4: break;
  }
  return "bf16";
}

std::string_view products_word(recipe::Precision precision) {
  if (precision == recipe::Precision::fp8) return "f8";
  return precision == recipe::Precision::nvfp4 ? "nvfp4" : "plan";
}

// The model is bound once to see what its indices are for, then with the batch and the sequences of the recipe.
Result<std::unique_ptr<RecipeProblem>> RecipeProblem::make(
    const session::Session::State& state, const std::string& model, const std::string& cluster,
    const recipe::Recipe& recipe, const std::string& stack, const std::function<bool()>& interrupted,
    const OnProgress& on_progress, std::string_view settings) {
  const std::string head = fmt::format(
      "EXPLAIN TRAIN {} ON {} WITH (precision = {}, optimizer = adamw, stack = '{}', stack_products = {}{}{}",
      model, cluster, precision_word(recipe.precision), stack, products_word(recipe.precision),
      settings.empty() ? "" : ", ", settings);
  WEFT_TRY(usual, prepare_text(state, head + ")", interrupted));
  WEFT_TRY(batch, planner::needed_batch_of(usual.prepared));
  std::string sizes = fmt::format(", {} = {}", batch.name, recipe.global_batch);
  if (recipe.sequence > 0) {
    const std::vector<std::string> along = distribute::index_roles(usual.prepared.plan.graph).sequence;
    for (const auto& [name, size] : usual.prepared.named_sizes())
      if (!along.empty() && name == along.front()) sizes += fmt::format(", {} = {}", name, recipe.sequence);
  }
  WEFT_TRY(sized, prepare_text(state, head + sizes + ")", interrupted));
  auto made = std::unique_ptr<RecipeProblem>(new RecipeProblem());
  made->context_.interrupted = interrupted;
  if (on_progress)
    made->context_.on_search = [on_progress](std::string_view name, const search::SearchProgress& now,
                                             double seconds) {
      explain::Progress progress;
      progress.model = name;
      progress.step = now.looked_at;
      progress.has_loss = false;
      progress.search = explain::SearchProgress{now.best_seconds, now.bound_seconds, seconds};
      on_progress(progress);
    };
  made->source_ = std::move(sized.source);
  made->prepared_ = std::move(sized.prepared);
  WEFT_TRY(rows, planner::needed_batch_of(made->prepared_));
  made->problem_ = std::make_unique<planner::StatementPipeline>(state, &made->context_, made->prepared_, rows,
                                                                /*micro_batches=*/1);
  made->pricer_ = std::make_unique<recipe::RecipeEstimator>(
      made->problem_->problem(), [settings = made->prepared_.settings](const cluster::Cluster& other) {
        return planner::machine_of(settings, other);
      });
  return made;
}

}  // namespace weft::command
