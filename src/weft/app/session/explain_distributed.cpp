#include "weft/app/session/explain_distributed.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "weft/app/explain/servers.h"
#include "weft/app/explain/stages.h"
#include "weft/app/explain/summary.h"
#include "weft/app/session/explain_in_time.h"
#include "weft/app/session/explain_recipe.h"
#include "weft/app/session/measure_distributed.h"
#include "weft/app/session/step_page.h"
#include "weft/app/session/trace.h"
#include "weft/formats/chakra_program.h"
#include "weft/parallel/distribute/parallelism.h"
#include "weft/planner/proof/prove_plan.h"
#include "weft/planner/step/plan_for.h"
#include "weft/planner/step/written_plan.h"
#include "weft/predict/cost/mesh_links.h"
#include "weft/predict/cost/plan_cost.h"
#include "weft/program/tasks/attribution.h"

namespace weft::session {
namespace {

// The ranks that are most alike stand for all.
const sim::RankClass& largest_class(const sim::Prediction& prediction) {
  return *std::ranges::max_element(prediction.classes, {},
                                   [](const sim::RankClass& ranks) { return ranks.ranks.size(); });
}

}  // namespace

explain::DistributedExplanation about_ranks(const explain::Explanation& explanation) {
  explain::DistributedExplanation about;
  about.task = explanation.task;
  about.model = explanation.model;
  about.sizes = explanation.sizes;
  about.settings = explanation.settings;
  about.precision = explanation.precision;
  about.cluster = explanation.cluster;
  about.spilled_seconds = explanation.spilled_seconds;
  return about;
}

std::string explain_stages(const explain::DistributedExplanation& about, const Prepared& prepared,
                           std::span<const search::StageReport> stages, const ExplainOptions& options,
                           std::size_t width) {
  explain::StagesExplanation explanation;
  explanation.headline =
      explain::headline(about.task, about.model, about.cluster.name, about.sizes, about.settings);
  explanation.stages = stages;
  explanation.planning_seconds = prepared.seconds_of_planning();
  explanation.width = width;
  return options.json ? print_json(explanation) : print_text(explanation);
}

Error not_this_machine(const Prepared& prepared) {
  const language::syntax::Run& run = *prepared.run;
  return user_error(
      fmt::format("EXPLAIN ANALYZE runs the plan on this machine, and {} is not it", prepared.target.name),
      "ON LOCAL 4 runs it on four ranks here", run.target ? run.target->span : run.span);
}

Answer explain_distributed(const Session::State& state, const Context& context, const Prepared& prepared,
                           explain::DistributedExplanation about, const ExplainOptions& options) {
  if (options.analyze && !cost::is_local(about.cluster) && prepared.gpu == nullptr)
    return not_this_machine(prepared);
  const Agreement agreement = options.analyze ? Agreement::ranks : Agreement::none;
  WEFT_TRY(step, plan_step(state, &context, prepared, /*compare=*/true, agreement));
  if (step.staged)
    return explain_in_time(state, context, prepared, std::move(about), options, *std::move(step.staged));
  const search::Choice* planned = &*step.whole;
  if (options.stages) return explain_stages(about, prepared, planned->reports, options, context.width);
  const search::DistributionChoice& choice = *planned->spread;
  const distribute::DistributedPlan& plan = choice.chosen.plan;
  if (options.plan) return print_written(plan, prepared);
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
  about.planning_seconds = prepared.seconds_of_planning();
  about.proof = proof.text;
  about.proven = proof.holds;

  const sim::RankClass& shown = largest_class(choice.chosen.prediction);
  about.choice = &choice;
  const std::optional<Batch> batch = batch_of(prepared);
  about.parallelism = distribute::print_parallelism(
      choice.distribution, distribute::index_roles(prepared.plan.graph), batch ? batch->rows : 0);
  about.hosts = prepared.hosts;
  about.stages = planned->reports;
  about.coded = planned->coded;
  about.averages = planned->averages;
  about.delayed = planned->delayed;
  about.credit = planned->credit;
  about.servers = explain::print_servers(choice.chosen.prediction, plan.mesh, prepared.settings.servers,
                                         /*share=*/!cost::is_local(about.cluster));
  WEFT_TRY(first, first_steps(state, prepared));
  about.rules = std::move(first);
  about.rules.insert(about.rules.end(), planned->trail.begin(), planned->trail.end());
  about.communication_rules = planned->communication_trail;
  about.memory_bytes = memory_of_a_rank(prepared.settings, about.cluster);
  about.devices_a_rank = workers_of(prepared.settings, about.cluster);
  about.model_flops = cost::plan_flops(planned->plan);
  about.local = shown.program->graph.get();
  about.phases = {plan::Phase::forward};
  if (prepared.trains()) {
    about.phases.push_back(plan::Phase::backward);
    about.phases.push_back(plan::Phase::update);
  }
  about.predicted = program::attribute(*shown.program, {&shown.timeline, 1},
                                       explain::seconds_at_best(*about.local, about.cluster.device), 1)
                        .node_seconds;
  for (const KeptHint& hint : state.hints) about.hints.push_back(hint.text);
  about.verbose = options.verbose;
  about.trail = options.trail;
  about.brief = options.summary;
  about.width = context.width;
  formats::Trace trace = trace_of(choice.chosen.prediction);
  std::optional<DistributedMeasurement> measured;
  if (options.analyze) {
    WEFT_TRY(found, measure_distributed(state, context, prepared, choice, shown.ranks.front()));
    measured = std::move(found);
    about.measured = measured->step;
    for (std::size_t rank = 0; rank < measured->ranks.size(); ++rank)
      add_rank(trace, *measured->ranks[rank].program, measured->ranks[rank].timeline,
               static_cast<std::int32_t>(choice.chosen.prediction.classes.size() + rank),
               fmt::format("measured: rank {}", rank));
  }
  if (!options.page.empty()) {
    explain::StepPage page = explain::step_page(about);
    if (measured) add_measured(page, *measured);
    WEFT_TRY_STATUS(write_step_page(options.page, page));
  }
  if (!options.chakra.empty())
    WEFT_TRY_STATUS(formats::write_chakra(choice.chosen.prediction, plan.mesh, options.chakra));
  if (!options.timeline.empty()) WEFT_TRY_STATUS(write_trace(options.timeline, trace));
  return options.json ? print_json(about) : print_text(about);
}

}  // namespace weft::session
