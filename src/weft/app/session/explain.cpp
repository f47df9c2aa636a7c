// EXPLAIN: plans the prepared statement and passes the result to explain/.
#include <algorithm>

#include <fmt/format.h>

#include "weft/app/explain/report.h"
#include "weft/app/session/explain_distributed.h"
#include "weft/app/session/explain_memory.h"
#include "weft/app/session/explain_one_device.h"
#include "weft/app/session/explain_recipe.h"
#include "weft/app/session/explain_torch.h"
#include "weft/app/session/first_answer.h"
#include "weft/app/session/learn.h"
#include "weft/app/session/priority_latency.h"
#include "weft/app/session/reply.h"
#include "weft/base/background_load.h"
#include "weft/base/letters.h"
#include "weft/base/nearest.h"
#include "weft/plan/graph/text.h"
#include "weft/plan/ops/operators.h"
#include "weft/planner/proof/prove_plan.h"
#include "weft/planner/statement/prepare.h"
#include "weft/planner/step/fit_memory.h"
#include "weft/planner/step/plan_for.h"
#include "weft/planner/step/plan_pipeline.h"
#include "weft/planner/step/statement_pipeline.h"
#include "weft/predict/cost/mesh_links.h"
#include "weft/predict/cost/operator_time.h"
#include "weft/predict/cost/plan_cost.h"
#include "weft/predict/cost/statistics.h"
#include "weft/predict/cost/unit_seconds.h"
#include "weft/predict/sim/step/memory_curve.h"
#include "weft/program/tasks/reference_ops.h"
#include "weft/runtime/exec/rank.h"
#include "weft/runtime/exec/rank_bytes.h"
#include "weft/runtime/run/batch_prefetcher.h"
#include "weft/runtime/run/fit_program.h"

namespace weft::session {

using plan::NodeId;

namespace {

// A rank's memory by kind, from the program that TRAIN and INFER would compile. Unless the target
// is this machine's processors, adds the step time to `predicted_seconds`.
Result<std::vector<explain::MemoryItem>> memory_of(const Session::State& state, const Prepared& prepared,
                                                   const plan::Graph& graph, double& predicted_seconds) {
  const bool here = prepared.target.on_processors();
  const bool accelerated = !here && cost::has_matrix_unit(prepared.target.device);
  // One thread, as in the predicted times, unless more are set.
  const int threads = here && prepared.settings.running.threads > 0 ? prepared.target.threads : 1;
  // Packing many thousands of buffers is too slow for EXPLAIN; above this, use the lower bound.
  constexpr std::size_t kMostPacked = 8000;
  WEFT_TRY(program, program::compile(std::make_shared<plan::Graph>(graph.clone()),
                                     {.workers = threads,
                                      .any_float = !here,
                                      .accelerated = accelerated,
                                      .pack = graph.node_count() <= kMostPacked,
                                      .tiles = !accelerated}));
  if (!here)
    for (const program::Unit& unit : program.units)
      predicted_seconds += cost::unit_seconds(program, unit, prepared.target.device);
  const auto own = static_cast<double>(program.bytes());
  double beside = 0;
  if (here) {
    WEFT_TRY(processor, device::open_device("cpu"));
    WEFT_TRY(bytes, exec::bytes_beside(program, *processor, threads));
    // Small amounts, which vary between machines' kernels, are not listed.
    constexpr double kLittle = 1 << 20, kLittleBeside = 0.05;
    if (const auto more = static_cast<double>(bytes); more > std::max(kLittle, kLittleBeside * own))
      beside = more;
  }
  const double all = own + beside;
  const sim::MemoryByKind kinds = sim::memory_by_kind(program, all);
  if (!prepared.trains())
    return std::vector<explain::MemoryItem>{{"parameters", kinds.parameters},
                                            {"states", kinds.optimizer},
                                            {"activations", kinds.activations + kinds.scratch},
                                            {"inputs", kinds.inputs}};
  std::vector<explain::MemoryItem> items = {{"parameters", kinds.parameters},
                                            {"gradients", kinds.gradients},
                                            {"optimizer", prepared.plan.optimizer_bytes},
                                            {"states", kinds.optimizer - prepared.plan.optimizer_bytes},
                                            {"activations", kinds.activations},
                                            {"inputs", kinds.inputs},
                                            {"scratch", kinds.scratch}};
  const auto known = state.weights.find(std::string(prepared.run->model.text));
  if (here && known != state.weights.end() && !prepared.settings.running.restart)
    items.push_back({"existing weights", static_cast<double>(run::bytes_of(known->second))});
  return items;
}

// Adds memory, spilled tensors and kept values of a plan for one device to the report.
Status describe_plan(const Session::State& state, const Prepared& prepared, const search::Choice& choice,
                     explain::Report& report) {
  explain::OneDevice& alone = *report.alone;
  WEFT_TRY(memory, memory_of(state, prepared, choice.plan, alone.predicted_seconds));
  alone.memory = std::move(memory);
  if (prepared.settings.spills) {
    const bool on_gpu = prepared.target.on_gpu();
    WEFT_TRY(fitted, run::fit_program(std::make_shared<plan::Graph>(choice.plan.clone()),
                                      run::rank_compiling(prepared.target.threads, on_gpu),
                                      static_cast<std::int64_t>(prepared.settings.memory_limit),
                                      prepared.target.gpu));
    report.spilled_bytes = static_cast<double>(fitted.spilled());
    report.spilled_seconds = spilling_seconds(fitted.program, on_gpu);
  }
  if (prepared.trains())
    report.operators.kept = choice.rewritten ? train::kept_values(choice.plan) : prepared.plan.kept;
  return {};
}

// Runs the plan for a few steps on the given data or on made-up numbers, and records the time of
// each task. The session's weights are unchanged.
Result<MeasuredOneDevice> measure(const Session::State& state, const Context& context,
                                  const Prepared& prepared, const explain::Report& report, bool urgent) {
  WEFT_TRY_STATUS(check_runs_here(prepared));
  const plan::Graph& graph = *report.operators.graph;
  const language::syntax::Run& run = *prepared.run;
  constexpr std::int64_t kSteps = 10, kMost = 10'000;
  const std::int64_t steps = std::clamp<std::int64_t>(run.steps ? run.steps->whole : kSteps, 1, kMost);
  std::unique_ptr<run::Feed> feed = run::made_up_feed(graph, 0);
  if (!run.data.empty()) {
    auto opened = run::open_feed(data_of(run), graph, {prepared.settings.running.holdout, 0});
    if (!opened.ok()) {
      Error error = std::move(opened).error();
      error.span = run.data[0].file.span;
      if (error.hint.empty()) error.hint = "without FROM, weft measures synthetic data";
      return error;
    }
    feed = std::move(*opened);
  }
  WEFT_TRY(rank, start_rank(graph.clone(), prepared));
  WEFT_TRY_STATUS(run::write_initial(*rank, static_cast<std::uint64_t>(prepared.settings.running.seed)));
  // The first steps touch memory for the first time and are not counted.
  constexpr std::int64_t kWarmUp = 2;
  const BackgroundLoad others;
  std::vector<program::Timeline> timelines;
  run::BatchPrefetcher batches(*rank, *feed);
  for (std::int64_t step = 0; step < kWarmUp + steps; ++step) {
    if (context.interrupted && context.interrupted()) return user_error("interrupted");
    batches.bring(step);
    program::Timeline timeline;
    WEFT_TRY_STATUS(rank->step(timeline));
    if (step >= kWarmUp) timelines.push_back(std::move(timeline));
  }
  const program::Program& program = rank->program();
  // Saves the times for later predictions. A database that cannot be written is not an error here.
  if (!prepared.target.on_gpu() && is_remembered(state, prepared.settings, others.share()))
    if (auto statistics = cost::Statistics::open({}, cost::Access::write); statistics.ok())
      (void)cost::learn(*statistics, program, timelines, {.workers = rank->workers()},
                        &report.cluster.device);
  MeasuredOneDevice measured;
  measured.step = {
      .times = program::attribute(program, timelines, explain::seconds_at_best(graph, report.cluster.device),
                                  rank->workers()),
      .ranks = prepared.target.on_gpu()
                   ? "one GPU"
                   : fmt::format("{} thread{}", rank->workers(), rank->workers() == 1 ? "" : "s"),
      .memory_bytes = static_cast<double>(rank->bytes()),
      .memory_lower_bound = static_cast<double>(program.persistent_bytes + program.work_lower_bound)};
  if (prepared.target.on_gpu() && !prepared.trains()) {
    WEFT_TRY(first, measure_first_answer(*rank, *prepared.target.gpu));
    measured.step.first_answer = first;
  }
  measured.program = std::make_shared<const program::Program>(program);
  measured.timeline = std::move(timelines.back());
  if (!urgent) return measured;
  rank.reset();  // two ranks may not fit in memory
  const auto make = [&](bool gives_way) -> Result<std::unique_ptr<exec::Rank>> {
    WEFT_TRY(made, start_rank(graph.clone(), prepared, {.gives_way = gives_way}));
    WEFT_TRY_STATUS(run::write_initial(*made, static_cast<std::uint64_t>(prepared.settings.running.seed)));
    feed->fill(*made, 0);
    return made;
  };
  WEFT_TRY(urgency, measure_priority_latency(make, prepared.target.gpu, context.interrupted));
  measured.step.urgency = urgency;
  return measured;
}

// The field for an option that names an output file; null for other options.
std::string* file_option(ExplainOptions& options, std::string_view name) {
  if (same_word(name, "TIMELINE")) return &options.timeline;
  if (same_word(name, "PAGE")) return &options.page;
  if (same_word(name, "CHAKRA")) return &options.chakra;
  if (same_word(name, "INDUCTOR")) return &options.inductor;
  return nullptr;
}

Result<ExplainOptions> read_options(const language::syntax::Explain& statement, const Context& context) {
  ExplainOptions options;
  options.verbose = statement.verbose;
  options.analyze = statement.analyze;
  options.form = statement.format;
  options.plan = statement.format == language::syntax::Format::plan;
  options.json = statement.format == language::syntax::Format::json || context.format == Format::json;
  for (const language::syntax::Option& option : statement.options) {
    const std::string_view name = option.name.text;
    if (explain::is_section(upper(name)) && !option.value) {
      options.sections.insert(upper(name));
    } else if (same_word(name, "SUMMARY") && !option.value) {
      // SUMMARY is the default report without sections.
    } else if (same_word(name, "URGENT") && !option.value) {
      options.urgent = true;
    } else if (std::string* file = file_option(options, name)) {
      if (!option.value || option.value->kind != language::syntax::ValueKind::text ||
          option.value->text.empty())
        return user_error(fmt::format("{} needs the name of a file", upper(name)),
                          fmt::format("for example: {} 'step'", upper(name)), option.name.span);
      *file = option.value->text;
    } else {
      constexpr std::string_view kOptions[] = {
          "ANALYZE",   "VERBOSE",     "FORMAT", "SUMMARY",      "MESH",    "PIPELINE",
          "OPERATORS", "COLLECTIVES", "STAGES", "ALTERNATIVES", "TRAIL",   "MEMORY",
          "URGENT",    "TIMELINE",    "PAGE",   "CHAKRA",       "INDUCTOR"};
      std::string hint = did_you_mean(name, kOptions);
      return user_error(
          fmt::format("EXPLAIN has no option {}", name),
          hint.empty()
              ? "options are ANALYZE, VERBOSE, FORMAT text, FORMAT json, FORMAT plan, MESH, PIPELINE, "
                "OPERATORS, COLLECTIVES, STAGES, ALTERNATIVES, TRAIL, MEMORY, URGENT, TIMELINE 'file', "
                "PAGE 'file', CHAKRA 'files', INDUCTOR 'file'"
              : std::move(hint),
          option.name.span);
    }
  }
  return options;
}

}  // namespace

namespace {

// Tokens per example of a text model, whose input is integers along its sequence; 1 for other
// models.
std::int64_t tokens_of(const plan::Graph& graph, const distribute::IndexRoles& roles) {
  for (std::size_t n = 0; n < graph.node_count() && !roles.sequence.empty(); ++n) {
    if (graph.node(NodeId(n)).op != &ops::input()) continue;
    const plan::Type type = graph.type(graph.result(NodeId(n)));
    if (plan::is_real(type.dtype) || type.rank() != 2) continue;
    for (const plan::Dim& dim : type.dims)
      if (graph.text(dim.index) == roles.sequence.front()) return dim.size;
  }
  return 1;
}

}  // namespace

explain::Report report_of(const Session::State& state, const Prepared& prepared) {
  explain::Report report;
  report.task = prepared.trains() ? "TRAIN" : "INFER";
  report.model = std::string(prepared.run->model.text);
  report.sizes = prepared.named_sizes();
  report.precision = prepared.settings.precision;
  report.settings.emplace_back("precision", prepared.settings.training.precision.name);
  if (!prepared.goals.empty())
    report.settings.emplace_back("minimize", print_goals(prepared));
  else if (prepared.trains())
    report.settings.emplace_back("optimizer", train::name(prepared.settings.training.optimizer));
  if (prepared.trains() && prepared.goals.empty() && train::is_narrow(prepared.settings.precision))
    report.settings.emplace_back("bytes per parameter",
                                 train::print_parameter_bytes(prepared.settings.training));
  report.cluster = prepared.target;
  report.hosts = prepared.target.hosts;
  report.roles = distribute::index_roles(prepared.plan.graph);
  if (const std::optional<Batch> batch = batch_of(prepared)) {
    report.rows = batch->rows;
    report.examples = static_cast<double>(batch->rows);
    if (const std::int64_t tokens = tokens_of(prepared.plan.graph, report.roles); tokens > 1) {
      report.example = "tokens";
      report.examples *= static_cast<double>(tokens);
    }
  }
  report.memory_limit = memory_per_rank(prepared.settings, prepared.target);
  report.device_memory = device_memory(prepared.target);
  report.memory_reserve = memory_reserve(prepared.settings, prepared.target);
  report.devices_per_rank = workers_of(prepared.settings, prepared.target);
  report.model_flops = cost::plan_flops(prepared.plan.graph);
  report.operators.phases = {plan::Phase::forward};
  if (prepared.trains())
    report.operators.phases = {plan::Phase::forward, plan::Phase::backward, plan::Phase::update};
  for (const KeptHint& hint : state.hints) report.hints.push_back(hint.text);
  return report;
}

Answer run_explain(const Session::State& state, const Context& context,
                   const language::syntax::Explain& statement) {
  const language::syntax::Run& run = *statement.run;
  WEFT_TRY(explain_options, read_options(statement, context));

  WEFT_TRY(prepared,
           prepare(state, run, statement.analyze ? Purpose::measure : Purpose::plan, context.interrupted));
  if (explain_options.urgent && (!statement.analyze || !prepared.target.on_gpu() || prepared.ranks > 1))
    return placed(user_error("URGENT needs ANALYZE and exactly one rank on a GPU",
                             "EXPLAIN (ANALYZE, URGENT) .. ON GPU"),
                  statement.span);
  explain::Report report = report_of(state, prepared);
  report.sections = explain_options.sections;
  report.verbose = explain_options.verbose;
  report.width = context.width;
  report.with_text = context.with_report;
  // Of a plan with stages for a cluster, MEMORY is a section. Other plans are compiled, to show what is alive when.
  WEFT_TRY(staged, prepared.trains() ? requested_pipeline(prepared.settings, prepared.run->span)
                                     : Result<std::optional<distribute::Distribution>>(std::nullopt));
  const bool by_stage = staged && !prepared.target.runs_here();
  if (explain_options.sections.contains("MEMORY") && !by_stage) {
    auto memory = explain_memory(state, context, prepared, report, explain_options.json);
    if (!memory.ok()) return placed(std::move(memory).error(), run.span);
    return std::move(*memory);
  }
  if (staged) return explain_distributed(state, context, prepared, std::move(report), explain_options);
  if ((is_recipe(explain_options.form) || is_torch(explain_options.form)) && prepared.ranks == 1)
    return placed(
        user_error("launcher settings need several devices, and this is one", "name a cluster: ON pod"),
        run.span);
  // Applies what TRAIN would do to stay within the memory limit. If nothing helps, the plan is
  // shown unchanged.
  const bool is_here = prepared.target.runs_here();
  if (is_here && prepared.trains() && fit_memory(state, context, prepared, 0).ok())
    report.within_limit = print_within_limit(prepared);
  if (prepared.ranks > 1 && prepared.settings.spills) {
    WEFT_TRY(what, recompute_of(prepared.settings));
    auto memory = memory_with(state, context, prepared, what, 0, prepared.settings.memory_limit);
    if (!memory.ok()) return placed(std::move(memory).error(), run.span);
    report.spilled_seconds = spilling_seconds(*memory->program, prepared.target.on_gpu());
  }
  if (prepared.ranks > 1)
    return explain_distributed(state, context, prepared, std::move(report), explain_options);
  auto planned = plan_for(state, prepared, /*compare=*/true, &context);
  if (!planned.ok()) return placed(std::move(planned).error(), run.span);
  const search::Choice& choice = *planned;
  WEFT_TRY(proof, require_proof(state, prepared, prepared.plan.graph, choice));
  report.proof = proof.text;
  report.proven = proof.holds;
  report.operators.graph = &choice.plan;
  report.alone.emplace();
  report.device_memory = prepared.target.device.memory_bytes;
  report.memory_limit = prepared.settings.memory_limit > 0
                            ? prepared.settings.memory_limit
                            : report.device_memory * (1 - report.memory_reserve);
  report.model_flops = cost::plan_flops(choice.plan);
  WEFT_TRY(trail, first_steps(state, prepared));
  double seconds_before = choice.seconds_before;
  for (const search::Step& step : trail) seconds_before -= step.change;
  trail.insert(trail.end(), choice.trail.begin(), choice.trail.end());
  if (prepared.settings.rules == true || !trail.empty())
    report.alone->rewriting = {seconds_before, choice.seconds_at_best, choice.stopped};
  report.rules = std::move(trail);
  report.stages = choice.reports;
  report.planning_seconds = prepared.seconds_of_planning();
  if (explain_options.plan) return plan::print(choice.plan);
  if (Status described = describe_plan(state, prepared, choice, report); !described.ok())
    return placed(std::move(described).error(), run.span);
  if (!run.target || run.target->local) {
    const auto program =
        program::compile(std::make_shared<plan::Graph>(choice.plan.clone()), {.pack = false, .tiles = false});
    if (program.ok()) report.alone->by_definition = program::find_reference_ops(*program);
  }
  std::optional<MeasuredOneDevice> measured;
  if (statement.analyze) {
    auto measurement = measure(state, context, prepared, report, explain_options.urgent);
    if (!measurement.ok()) return placed(std::move(measurement).error(), statement.span);
    measured = std::move(*measurement);
    report.measured = measured->step;
  }
  WEFT_TRY_STATUS(write_one_device_files(prepared, report, choice, measured, explain_options));
  return explain_options.json ? print_json(report) : print_text(report);
}

}  // namespace weft::session
