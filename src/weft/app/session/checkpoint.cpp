// SAVE and LOAD: write a model's weights to a file and read them back.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "weft/app/session/state.h"
#include "weft/base/units.h"
#include "weft/language/bind.h"
#include "weft/language/print.h"
#include "weft/plan/ops/operators.h"
#include "weft/planner/statement/prepare.h"
#include "weft/runtime/run/local_ranks.h"
#include "weft/runtime/run/rank_comparison.h"

namespace weft::session {
namespace {

using Json = nlohmann::ordered_json;

// Fails unless the file holds every parameter of the model with the declared sizes.
Status check_parameters(const Session::State& state, const Context& context,
                        const language::syntax::Name& model, const run::Weights& weights,
                        const std::string& path) {
  language::BindOptions options;
  options.plan_limit = state.settings.plan_limit;
  options.interrupted = context.interrupted;
  options.precision = state.settings.precision;
  WEFT_TRY(declared, sizes_of(state.catalog, model));
  for (const auto& [name, size] : weights.sizes)
    if (std::ranges::find(declared, name) != declared.end())
      options.sizes.push_back({name, size, model.span});
  WEFT_TRY(bound, language::bind(state.catalog, model, options));
  for (std::size_t n = 0; n < bound.graph.node_count(); ++n) {
    const plan::NodeView node = bound.graph.view(plan::NodeId(n));
    if (&node.op() != &ops::parameter()) continue;
    const std::string name(node.word(0));
    const auto found = weights.tensors.find(name);
    if (found == weights.tensors.end())
      return user_error(fmt::format("{} has no parameter {} of {}", path, name, model.text),
                        "it was saved from another model or another version of this model");
    std::vector<std::int64_t> shape;
    for (const plan::Dim& dim : node.result_type(0).dims) shape.push_back(dim.size);
    if (found->second.shape != shape)
      return user_error(fmt::format("{} holds {} as [{}], {} has it as [{}]", path, name,
                                    fmt::join(found->second.shape, ","), model.text, fmt::join(shape, ",")),
                        "it was saved from another model or another version of this model");
  }
  return {};
}

}  // namespace

Result<run::Weights> read_weights_file(const Session::State& state, const Context& context,
                                       const language::syntax::Name& model, const std::string& path) {
  WEFT_TRY(checkpoint, formats::load(path));
  WEFT_TRY(weights, run::from_checkpoint(checkpoint, model.text, path));
  WEFT_TRY_STATUS(check_parameters(state, context, model, weights, path));
  return weights;
}

// Ranks of a launcher hold identical weights: rank 0 writes the file, and all ranks return its
// status.
Answer run_save(const Session::State& state, const Context& context, const language::syntax::Save& save) {
  WEFT_TRY(sizes, sizes_of(state.catalog, save.name));
  const auto found = state.weights.find(std::string(save.name.text));
  if (found == state.weights.end())
    return user_error(
        fmt::format("{} is not trained yet", save.name.text),
        fmt::format("TRAIN {} FROM 'data.csv' STEPS 1000", language::print_name(save.name.text)),
        save.name.span);
  const std::string path(save.file.text);
  const auto write = [&]() -> Status {
    run::RankComparison before(fmt::format("SAVE {}", save.name.text), run::RankComparison::When::joined);
    std::vector<run::Claim> claims;
    if (before.compares())
      claims.push_back({.what = "weights", .value = run::digest_of(found->second).hex(), .hint = {}});
    WEFT_TRY_STATUS(before.end({}, std::move(claims)));
    run::RankComparison writing(fmt::format("SAVE {} TO '{}'", save.name.text, path),
                                run::RankComparison::When::joined);
    return writing.end(run::launched_rank() == 0 ? formats::save(path, run::to_checkpoint(found->second))
                                                 : Status());
  };
  Status saved = write();
  if (!saved.ok()) {
    Error error = std::move(saved).error();
    error.span = save.file.span;
    return error;
  }
  const std::int64_t bytes = run::bytes_of(found->second);
  if (context.format == Format::json)
    return Json{{"saved", save.name.text}, {"step", found->second.step}, {"file", path}, {"bytes", bytes}}
               .dump() +
           "\n";
  return fmt::format("saved {} at step {} to {}, {}\n", save.name.text, print_exact(found->second.step), path,
                     print_bytes(static_cast<double>(bytes)));
}

Answer run_load(Session::State& state, const Context& context, const language::syntax::Load& load) {
  WEFT_TRY(sizes, sizes_of(state.catalog, load.name));
  const std::string path(load.file.text);
  run::RankComparison reading(fmt::format("LOAD {}", load.name.text), run::RankComparison::When::joined);
  auto weights = read_weights_file(state, context, load.name, path);
  if (Status all = reading.end(weights.ok() ? Status() : Status(weights.error())); weights.ok() && !all.ok())
    weights = std::move(all).error();
  if (!weights.ok()) {
    Error error = std::move(weights).error();
    if (!error.span.known()) error.span = load.file.span;
    if (error.hint.empty()) error.hint = "expected a file written by SAVE";
    return error;
  }
  const std::int64_t step = weights->step;
  const std::size_t tensors = weights->tensors.size();
  state.weights[std::string(load.name.text)] = std::move(*weights);
  state.loaded.emplace(load.name.text);
  if (context.format == Format::json)
    return Json{{"loaded", load.name.text}, {"step", step}, {"file", path}, {"tensors", tensors}}.dump() +
           "\n";
  return fmt::format("loaded {} at step {} from {}, {} tensors\n", load.name.text, print_exact(step), path,
                     tensors);
}

}  // namespace weft::session
