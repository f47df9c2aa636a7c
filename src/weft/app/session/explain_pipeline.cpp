#include "weft/app/session/explain_pipeline.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "weft/app/session/explain_recipe.h"
#include "weft/app/session/explain_torch.h"
#include "weft/app/session/measure_pipeline.h"
#include "weft/app/session/step_page.h"
#include "weft/app/session/trace.h"
#include "weft/formats/chakra.h"
#include "weft/formats/chakra_program.h"
#include "weft/parallel/pipeline/unroll.h"
#include "weft/parallel/train/local_norms.h"
#include "weft/planner/proof/prove_plan.h"
#include "weft/planner/search/distribution/lower_bound.h"
#include "weft/planner/step/plan_for.h"
#include "weft/planner/step/plan_pipeline.h"
#include "weft/planner/step/written_plan.h"
#include "weft/predict/cost/mesh_links.h"
#include "weft/predict/cost/plan_cost.h"
#include "weft/program/tasks/program.h"

namespace weft::session {
namespace {

using distribute::Distribution;

class InTimeExplainer {
 public:
  InTimeExplainer(const Session::State& state, const Context& context, const Prepared& prepared,
                  explain::Report report, const ExplainOptions& options, StagedStep step)
      : state_(state),
        context_(context),
        prepared_(prepared),
        options_(options),
        runs_here_(prepared.target.runs_here()),
        step_(std::move(step)),
        report_(std::move(report)) {
    report_.pipeline = explain::Pipeline{.choice = &step_.chosen,
                                         .given = step_.given,
                                         .batch = step_.batch.name,
                                         .rows = step_.batch.rows,
                                         .without_stages = std::move(step_.without_stages)};
    report_.stages = step_.reports;
    if (!step_.plan) return;
    report_.coded = step_.plan->coded;
    codecs_ = step_.plan->codecs;
  }

  Result<std::string> say() {
    const search::ChosenPipeline& choice = step_.chosen;
    if (is_torch(options_.form)) {
      auto made = plan_of(choice.distribution);
      if (!made.ok() && options_.form == language::syntax::Format::torch) return std::move(made).error();
      return explain_torch(state_, context_, prepared_, made.ok() ? &(*made)->spread->chosen.plan : nullptr,
                           choice.distribution, choice.priced.seconds, options_.form);
    }
    if (is_recipe(options_.form))
      return explain_recipe(state_, context_, prepared_, choice.distribution, choice.priced.seconds,
                            options_.form);
    if (!options_.inductor.empty())
      return user_error("INDUCTOR needs a plan without stages", "torch.compile compiles each stage by itself");
    WEFT_TRY(text, write_plan(choice));
    if (text) return *std::move(text);
    std::string slices = step_.plan ? step_.plan->slices : std::string();
    if (choice.priced.slices && slices.empty())
      slices = "ranks of a stage that hold the same tensor send a slice of it each";
    if (!slices.empty()) report_.notes.emplace_back("scatter_gather_sends", std::move(slices));
    explain::Pipeline& pipeline = *report_.pipeline;
    search::LowerBound bound = search::lower_bound(prepared_.plan.graph, *problem_.cluster);
    pipeline.lower_bound_seconds = bound.seconds;
    pipeline.lower_bound_by = std::move(bound.why);
    for (search::Alternative& family : pipeline.without_stages)
      family.why_not = search::why_slower(family, choice.priced.seconds, problem_.memory_bytes);
    pipeline.batch_norms = train::count_batch_norms(prepared_.plan.graph);
    report_.memory_limit = std::isfinite(choice.priced.room) ? choice.priced.room : problem_.memory_bytes;
    WEFT_TRY(proof, prove(choice));
    report_.planning_seconds = prepared_.seconds_of_planning();
    report_.proof = std::move(proof.text);
    report_.proven = proof.holds;
    if (options_.analyze) {
      WEFT_TRY(measured, measure_pipeline(state_, context_, prepared_, *step_.plan));
      report_.measured = measured.step;
      measured_ = std::move(measured);
    }
    WEFT_TRY_STATUS(write_files());
    return options_.json ? print_json(report_) : print_text(report_);
  }

 private:
  // Writes every rank's program as a Chakra trace, with the costs of the prediction.
  Status write_chakra(const distribute::DistributedPlan& plan) const {
    constexpr double kMostNodes = 1e7;
    const plan::Mesh& mesh = plan.whole_mesh();
    const auto micro_batches = static_cast<double>(plan.time->distribution.micro_batches);
    if (static_cast<double>(plan.graph.node_count()) * micro_batches * mesh.ranks() > kMostNodes)
      return user_error(fmt::format("{} ranks with {} micro-batches of {} nodes each are too many to trace",
                                    mesh.ranks(), micro_batches, plan.graph.node_count()),
                        "use fewer ranks or micro-batches");
    WEFT_TRY(costs, problem_.machine->costs(made_.as_priced(plan.time->distribution).mesh));
    std::vector<program::Program> programs;
    for (std::int32_t rank = 0; rank < mesh.ranks(); ++rank) {
      WEFT_TRY(unrolled, pipeline::unroll(plan, rank));
      program::CompileOptions how = costs.compile;
      how.tiles = how.pack = false;
      how.turns = unrolled.turns;
      WEFT_TRY(compiled, program::compile(std::make_shared<plan::Graph>(std::move(unrolled.graph)), how));
      programs.push_back(std::move(compiled));
    }
    WEFT_TRY(trace, formats::execution_trace(programs, mesh, costs));
    return formats::write_chakra(trace, options_.chakra);
  }

  Status write_files() const {
    if (!options_.page.empty()) {
      explain::StepPage page = step_page(report_);
      if (measured_) add_measured(page, *measured_);
      WEFT_TRY_STATUS(write_step_page(options_.page, page));
    }
    return options_.timeline.empty() ? Status() : write_trace(options_.timeline, trace());
  }

  // One process per predicted stage and one per measured rank.
  formats::Trace trace() const {
    formats::Trace trace;
    const search::PipelineEstimate& priced = step_.chosen.priced;
    std::int32_t process = 0;
    for (std::size_t s = 0; s < priced.stages.size(); ++s, ++process) {
      trace.names.push_back({process, -1, fmt::format("predicted: stage {}", s)});
      add_passes(trace, priced.schedule.orders[s], priced.price.slots[s], process, 0);
      const double passed = priced.price.slots[s].empty() ? 0 : priced.price.slots[s].back().end;
      trace.events.push_back(
          {"gradient sums and update", "update", process, 0, passed, priced.stages[s].update});
    }
    if (!measured_) return trace;
    for (const PipelineRank& rank : measured_->ranks) {
      add_rank(trace, *rank.program, rank.timeline, process,
               fmt::format("measured: rank {}, stage {}", rank.rank, rank.stage));
      add_passes(trace, rank.passes, rank.slots, process++,
                 static_cast<std::int32_t>(rank.program->streams.size()));
    }
    return trace;
  }

  // Returns the plan's text for FORMAT plan; writes the Chakra trace if requested.
  Result<std::optional<std::string>> write_plan(const search::ChosenPipeline& choice) const {
    const auto written = [&](const search::Choice& made) -> Result<std::optional<std::string>> {
      const distribute::DistributedPlan& plan = made.spread->chosen.plan;
      if (options_.plan) return std::optional(print_written(plan, prepared_));
      WEFT_TRY_STATUS(write_chakra(plan));
      return std::optional<std::string>();
    };
    if (!options_.plan && options_.chakra.empty()) return std::optional<std::string>();
    WEFT_TRY(made, plan_of(choice.distribution));
    return written(*made);
  }

  // The plan itself, built on first use.
  Result<const search::Choice*> plan_of(const Distribution& distribution) const {
    if (!step_.plan) {
      WEFT_TRY(made, plan_pipeline(state_, &context_, prepared_, distribution));
      step_.plan = std::move(made);
    }
    return &*step_.plan;
  }

  // Whether proving every stage over the finite field takes only seconds.
  bool is_quickly_proven(const Distribution& distribution) const {
    constexpr double kMostRuns = 20'000;  // of a node, per rank and micro-batch
    constexpr std::int64_t kMicroBatches = 4;
    auto runs = static_cast<double>(prepared_.plan.graph.node_count()) *
                static_cast<double>(std::min(distribution.micro_batches, kMicroBatches));
    for (const plan::MeshAxis& axis : distribute::within_stage(distribution).mesh.axes)
      runs *= std::min(axis.ranks, 2);
    return runs <= kMostRuns;
  }

  // Proves one micro-batch on the mesh of a stage.
  Result<Proof> prove_within(const Prepared& micro, const Distribution& within) {
    const search::Machine machine = search::within_mesh((*problem_.machine), step_.chosen.distribution.mesh);
    WEFT_TRY(prices, machine.prices(within.mesh));
    search::Choice spread;
    spread.plan = micro.plan.graph.clone();
    spread.until = problem_.until;
    WEFT_TRY(plan, distribute::distribute(micro.plan.graph, within, {.prices = std::move(prices)}));
    if (codecs_.any()) {
      WEFT_TRY(coded, search::place_codecs(plan, codecs_));
      plan = std::move(coded.plan);
    }
    spread.spread.emplace();
    spread.spread->distribution = within;
    spread.spread->chosen.plan = std::move(plan);
    return require_proof(state_, micro, micro.plan.graph, spread);
  }

  // Plans that run on this machine and small plans are proven as a whole. For a large plan, the
  // proof covers one micro-batch within each stage; the order of all passes was verified when it
  // was estimated.
  Result<Proof> prove(const search::ChosenPipeline& choice) {
    if (runs_here_) return require_proof(state_, prepared_, prepared_.plan.graph, *step_.plan);
    const Distribution& distribution = choice.distribution;
    if (is_quickly_proven(distribution) && !distribution.offload)
      if (const auto plan = plan_of(distribution); plan.ok()) {
        WEFT_TRY(whole, require_proof(state_, prepared_, prepared_.plan.graph, **plan));
        if (whole.holds) return whole;
      }
    WEFT_TRY(micro,
             made_.recomputed(report_.pipeline->rows / distribution.micro_batches, distribution.recompute));
    Proof proof{true, "one device per stage"};
    std::vector<Distribution> proven;  // meshes proven so far
    for (std::size_t stage = 0; stage < choice.priced.stages.size() && proof.holds; ++stage) {
      const Distribution within =
          search::on_stage(distribute::as_in_stage(distribution, static_cast<std::int32_t>(stage)));
      if (within.mesh.ranks() == 1 || std::ranges::find(proven, within) != proven.end()) continue;
      WEFT_TRY(found, prove_within(micro, within));
      if (proven.empty() || !found.holds) proof = std::move(found);
      proven.push_back(within);
    }
    const pipeline::Schedule& schedule = choice.priced.schedule;
    proof.text = fmt::format(
        "a micro-batch{}: {}\nits schedule: verified, every F, B and W of {} micro-batch{} once on each of "
        "{} "
        "stage{}, in order, without deadlock\nthe proof covers one micro-batch; inter-stage sends and "
        "gradient accumulation are proven on smaller plans",
        proven.size() > 1 ? fmt::format(" on each of {} meshes", proven.size()) : std::string(), proof.text,
        schedule.micro_batches, schedule.micro_batches == 1 ? "" : "es", schedule.stages,
        schedule.stages == 1 ? "" : "s");
    if (codecs_.activations) proof.text += "\nvalues sent between stages are equal up to codecs";
    return proof;
  }

  const Session::State& state_;
  const Context& context_;
  const Prepared& prepared_;
  const ExplainOptions& options_;
  const bool runs_here_;
  mutable StagedStep step_;
  StatementPipeline& made_ = *step_.problem;
  const search::PipelineProblem& problem_ = made_.problem();
  std::optional<PipelineMeasurement> measured_;
  search::CodecUse codecs_;  // of the explained plan
  explain::Report report_;
};

}  // namespace

Answer explain_pipeline(const Session::State& state, const Context& context, const Prepared& prepared,
                        explain::Report report, const ExplainOptions& options, StagedStep step) {
  auto said = InTimeExplainer(state, context, prepared, std::move(report), options, std::move(step)).say();
  if (said.ok()) return *std::move(said);
  Error error = std::move(said).error();
  if (!error.span.known()) error.span = prepared.run->span;
  return error;
}

}  // namespace weft::session
