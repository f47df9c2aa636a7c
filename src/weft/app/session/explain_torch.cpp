#include "weft/app/session/explain_torch.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "weft/app/session/explain_recipe.h"
#include "weft/planner/step/statement_pipeline.h"
#include "weft/translate/recipe/spread.h"
#include "weft/translate/recipe/titan_config.h"
#include "weft/translate/recipe/torch_plan.h"

namespace weft::session {
namespace {

using Form = language::syntax::Format;

// Degrees and batches of the plan.
recipe::GatheredRecipe degrees_of(const Prepared& prepared, const distribute::Distribution& chosen,
                                  recipe::Precision precision) {
  const distribute::IndexRoles roles = distribute::index_roles(prepared.plan.graph);
  recipe::Recipe like;
  like.precision = precision;
  if (const auto batch = planner::batch_of(prepared)) like.global_batch = batch->rows;
  for (const auto& [name, size] : prepared.named_sizes())
    if (!roles.sequence.empty() && name == roles.sequence.front()) like.sequence = size;
  return gather(chosen, roles, like);
}

recipe::Written file_of(const Prepared& prepared, const recipe::TorchPlan& plan,
                        const distribute::Distribution& chosen, Form form) {
  if (form == Form::torch) return print_torch(plan);
  return print_titan_config(plan, degrees_of(prepared, chosen, plan.precision));
}

}  // namespace

bool is_torch(Form form) { return form == Form::torch || form == Form::torchtitan; }

Answer explain_torch(const Session::State& state, const Context& context, const Prepared& prepared,
                     const distribute::DistributedPlan* plan, const distribute::Distribution& chosen,
                     double seconds, Form form) {
  const std::string_view format = form == Form::torch ? "torch" : "torchtitan";
  if (!prepared.trains())
    return user_error(fmt::format("FORMAT {} needs TRAIN", format), "the file describes training",
                      prepared.run->span);
  const recipe::Precision precision = precision_of(prepared.settings.precision);
  const plan::Graph& model = prepared.plan.graph;
  WEFT_TRY(made, plan != nullptr ? recipe::torch_plan(model, *plan, chosen, precision)
                                 : recipe::torch_stages(model, chosen, precision));
  const recipe::Written written = file_of(prepared, made, chosen, form);
  if (context.format == Format::json) {
    const nlohmann::ordered_json json = {{"format", format},
                                         {"plan", print(chosen)},
                                         {"step_seconds", seconds},
                                         {"configuration", written.text},
                                         {"configuration_plan", print(chosen)},
                                         {"configuration_seconds", seconds},
                                         {"lost", written.lost}};
    return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  }
  if (!written.lost.empty())
    state.warnings.add(fmt::format("{} cannot express all of {}", format, print(chosen)),
                       user_error(fmt::format("{}", fmt::join(written.lost, "; "))));
  return written.text;
}

}  // namespace weft::session
