// INFER: runs a model on data.
#include <string>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "weft/app/session/learn.h"
#include "weft/app/session/predictions.h"
#include "weft/app/session/ready_to_train.h"
#include "weft/app/session/reply.h"
#include "weft/app/session/score_text.h"
#include "weft/base/units.h"
#include "weft/planner/statement/prepare.h"

namespace weft::session {
namespace {

constexpr std::int64_t kMostJsonValues = 10'000;  // in a JSON reply; INTO has no limit

}  // namespace

Answer run_infer(Session::State& state, const Context& context, const language::syntax::Run& run) {
  WEFT_TRY(prepared, prepare(state, run, Purpose::run, context.interrupted));
  const run::Weights& weights = state.weights.at(std::string(run.model.text));
  // Uses every row: the last batch may be partial.
  auto feed = run::open_feed(data_of(run), prepared.plan.graph,
                             {.holdout = prepared.settings.running.holdout,
                              .seed = weights.seed,
                              .partial_batches = true,
                              .holdout_drawn = prepared.settings.running.holdout_drawn});
  if (!feed.ok()) return about_data(std::move(feed).error(), run.data[0].file.span);
  const bool json_rows = context.format == Format::json;
  Predictions predictions(run.into ? Predictions::kAll : json_rows ? kMostJsonValues : 0);
  Scorer scorer(state, context, prepared, **feed);
  Scorer::OnBatch on_batch;
  if (run.into || json_rows)
    on_batch = [&](const exec::Rank& rank, std::int64_t examples) { return predictions.add(rank, examples); };
  auto found = scorer.score(weights, on_batch);
  if (!found.ok()) return placed(std::move(found).error(), run.span);
  if (run.into) {
    Status written = predictions.write(std::string(run.into->text), run.model.text);
    if (!written.ok()) return placed(std::move(written).error(), run.into->span);
  }
  if (context.format == Format::json) {
    nlohmann::ordered_json json = {{"inferred", run.model.text}};
    json.update(score_json(*found));
    if (found->first_answer) json["first_answer"] = *found->first_answer;
    if (run.into) json["into"] = run.into->text;
    if (!run.into) json.update(predictions.to_json());
    if (!found->unproven.empty()) json["unproven"] = found->unproven;
    return json.dump() + "\n";
  }
  std::string text = fmt::format("{} after {} step{}, {}{}{}", run.model.text, print_exact(weights.step),
                                 weights.step == 1 ? "" : "s", print_score(*found, (*feed)->example(), "on"),
                                 found->unproven, found->unproven.empty() ? "" : "\n");
  if (found->first_answer)
    text +=
        fmt::format("first answer {} after the first weight was sent\n", print_seconds(*found->first_answer));
  if (run.into)
    text += fmt::format("wrote {} of {} to {}\n", predictions.what(), print_exact(found->examples),
                        run.into->text);
  return text;
}

}  // namespace weft::session
