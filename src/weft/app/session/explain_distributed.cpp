#include "weft/app/session/explain_distributed.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "weft/app/explain/servers.h"
#include "weft/app/session/explain_pipeline.h"
#include "weft/app/session/explain_recipe.h"
#include "weft/app/session/explain_torch.h"
#include "weft/app/session/measure_distributed.h"
#include "weft/app/session/step_page.h"
#include "weft/app/session/trace.h"
#include "weft/formats/chakra_program.h"
#include "weft/formats/inductor_trace.h"
#include "weft/planner/proof/prove_plan.h"
#include "weft/planner/step/plan_for.h"
#include "weft/planner/step/written_plan.h"
#include "weft/predict/cost/plan_cost.h"
#include "weft/program/tasks/attribution.h"

namespace weft::session {
namespace {

// The largest class of equal ranks, which represents all of them.
const sim::RankClass& largest_class(const sim::Prediction& prediction) {
  return *std::ranges::max_element(prediction.classes, {},
                                   [](const sim::RankClass& ranks) { return ranks.ranks.size(); });
}

}  // namespace

Error not_this_machine(const Prepared& prepared) {
  const language::syntax::Run& run = *prepared.run;
  return user_error(
      fmt::format("EXPLAIN ANALYZE runs the plan on this machine, not on {}", prepared.target.name),
      "ON LOCAL 4 runs it on four ranks here", run.target ? run.target->span : run.span);
}

Answer explain_distributed(const Session::State& state, const Context& context, const Prepared& prepared,
                           explain::Report report, const ExplainOptions& options) {
  if (options.analyze && !prepared.target.runs_here()) return not_this_machine(prepared);
  const Agreement agreement = options.analyze ? Agreement::ranks : Agreement::none;
  // A given distribution is estimated alone: others take much longer, and were not asked for.
  const bool compare =
      prepared.settings.distribution.empty() || options.verbose || options.sections.contains("ALTERNATIVES");
  WEFT_TRY(step, plan_step(state, &context, prepared, compare, agreement));
  if (step.staged)
    return explain_pipeline(state, context, prepared, std::move(report), options, *std::move(step.staged));
  const search::Choice* planned = &*step.whole;
  const search::DistributionChoice& choice = *planned->spread;
  const distribute::DistributedPlan& plan = choice.chosen.plan;
  if (options.plan) return print_written(plan, prepared);
  if (is_torch(options.form))
    return explain_torch(state, context, prepared, &plan, choice.distribution,
                         choice.chosen.prediction.seconds, options.form);
  if (is_recipe(options.form))
    return explain_recipe(state, context, prepared, choice.distribution, choice.chosen.prediction.seconds,
                          options.form);

  Proof proof{false, "not proven: the search was interrupted"};
  if (!was_interrupted(*planned)) {
    WEFT_TRY(found, require_proof(state, prepared, prepared.plan.graph, *planned));
    proof = std::move(found);
  } else if (options.analyze) {
    return user_error("interrupted", "nothing was run");
  }
  report.planning_seconds = prepared.seconds_of_planning();
  report.proof = proof.text;
  report.proven = proof.holds;
  const sim::RankClass& shown = largest_class(choice.chosen.prediction);
  report.choice = &choice;
  report.prediction = &choice.chosen.prediction;
  report.stages = planned->reports;
  report.coded = planned->coded;
  report.simpler = planned->simpler;
  const std::pair<std::string_view, std::string> notes[] = {
      {"all_reduce_window", planned->credit},
      {"parameter_servers",
       explain::print_servers(choice.chosen.prediction, plan.mesh, prepared.settings.servers,
                              /*share=*/!report.is_local())},
      {"gradient_delay", planned->delayed},
      {"sync_every", planned->averages}};
  for (const auto& [key, text] : notes)
    if (!text.empty()) report.notes.emplace_back(key, text);
  WEFT_TRY(first, first_steps(state, prepared));
  report.rules = std::move(first);
  report.rules.insert(report.rules.end(), planned->trail.begin(), planned->trail.end());
  report.communication_rules = planned->communication_trail;
  report.model_flops = cost::plan_flops(planned->plan);
  report.operators.graph = shown.program->graph.get();
  report.operators.predicted =
      program::attribute(*shown.program, {&shown.timeline, 1},
                         explain::seconds_at_best(*report.operators.graph, report.cluster.device), 1)
          .node_seconds;
  formats::Trace trace = trace_of(choice.chosen.prediction);
  std::optional<DistributedMeasurement> measured;
  if (options.analyze) {
    WEFT_TRY(found, measure_distributed(state, context, prepared, choice, shown.ranks.front()));
    measured = std::move(found);
    report.measured = measured->step;
    for (std::size_t rank = 0; rank < measured->ranks.size(); ++rank)
      add_rank(trace, *measured->ranks[rank].program, measured->ranks[rank].timeline,
               static_cast<std::int32_t>(choice.chosen.prediction.classes.size() + rank),
               fmt::format("measured: rank {}", rank));
  }
  if (!options.page.empty()) {
    explain::StepPage page = step_page(report);
    if (measured) add_measured(page, *measured);
    WEFT_TRY_STATUS(write_step_page(options.page, page));
  }
  if (!options.chakra.empty())
    WEFT_TRY_STATUS(formats::write_chakra(choice.chosen.prediction, plan.mesh, options.chakra));
  if (!options.inductor.empty())
    WEFT_TRY_STATUS(formats::write_inductor_trace(choice.chosen.prediction, plan.mesh, options.inductor));
  if (!options.timeline.empty()) WEFT_TRY_STATUS(write_trace(options.timeline, trace));
  return options.json ? print_json(report) : print_text(report);
}

}  // namespace weft::session
