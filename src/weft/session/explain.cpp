// EXPLAIN: binds the model, makes the training plan where one is asked for, and hands both to explain/.
#include <algorithm>

#include <fmt/format.h>

#include "weft/base/letters.h"
#include "weft/base/nearest.h"
#include "weft/cost/liveness.h"
#include "weft/cost/operator_time.h"
#include "weft/cost/statistics.h"
#include "weft/explain/explanation.h"
#include "weft/plan/text.h"
#include "weft/session/explain_distributed.h"
#include "weft/session/learn.h"
#include "weft/session/rule_source.h"
#include "weft/session/state.h"
#include "weft/train/training_plan.h"

namespace weft::session {

using language::syntax::Task;
using plan::NodeId;

Result<std::vector<std::string_view>> sizes_of(const language::Catalog& catalog,
                                               const language::syntax::Name& model) {
  const auto found = catalog.models.find(model.text);
  if (found == catalog.models.end())
    return language::unknown("model", model, language::names_of(catalog.models));
  std::vector<std::string_view> names;
  for (const language::syntax::Size& size : found->second.statement->body.sizes)
    names.push_back(size.name.text);
  return names;
}

Result<cluster::Cluster> target_of(const language::Catalog& catalog,
                                   const std::optional<language::syntax::Target>& target) {
  if (!target || target->local) {
    const std::int64_t ranks = target && target->ranks ? target->ranks->whole : 1;
    constexpr std::int64_t kMost = 4096;
    if (ranks > kMost)
      return user_error(fmt::format("LOCAL takes at most {} ranks, found {}", kMost, ranks),
                        "to plan for more, name a cluster: ON pod", target->span);
    const auto core = catalog.devices.find("cpu_core");
    if (core == catalog.devices.end())
      return user_error("LOCAL needs the device cpu_core, which was dropped", "CREATE DEVICE cpu_core (...)",
                        target ? target->span : Span{});
    return cluster::Cluster{fmt::format("LOCAL {}", ranks), core->second, {cluster::Axis{"rank", ranks, {}}}};
  }
  const auto found = catalog.clusters.find(target->cluster.text);
  if (found == catalog.clusters.end())
    return language::unknown("cluster", target->cluster, language::names_of(catalog.clusters));
  return found->second;
}

namespace {

double bytes_of_sources(const plan::Graph& graph, std::string_view kind) {
  double bytes = 0;
  for (std::size_t n = 0; n < graph.node_count(); ++n)
    if (graph.node(NodeId(n)).op->name() == kind)
      bytes += static_cast<double>(graph.type(graph.result(NodeId(n))).bytes());
  return bytes;
}

// Runs the plan for a few steps, on the data given or on made-up numbers, and writes down how long each
// task took. The session's weights stay as they are.
Result<explain::Measurement> measure(const Session::State& state, const Context& context,
                                     const language::syntax::Run& run,
                                     const explain::Explanation& explanation) {
  WEFT_TRY(request, read_request(state, run));
  constexpr std::int64_t kSteps = 10, kMost = 10'000;
  const std::int64_t steps = std::clamp<std::int64_t>(run.steps ? run.steps->whole : kSteps, 1, kMost);
  std::unique_ptr<run::Feed> feed = run::made_up_feed(*explanation.graph, 0);
  if (run.data) {
    auto opened = run::open_feed(std::string(run.data->text), *explanation.graph,
                                 {request.settings.running.holdout, 0});
    if (!opened.ok()) {
      Error error = std::move(opened).error();
      error.span = run.data->span;
      if (error.hint.empty()) error.hint = "without FROM, made-up numbers are measured";
      return error;
    }
    feed = std::move(*opened);
  }
  WEFT_TRY(rank, start_rank(explanation.graph->clone(), request));
  run::write_initial(*rank, static_cast<std::uint64_t>(request.settings.running.seed));
  // The first steps touch memory for the first time; they are not counted.
  constexpr std::int64_t kWarmUp = 2;
  std::vector<program::Timeline> timelines;
  for (std::int64_t step = 0; step < kWarmUp + steps; ++step) {
    if (context.interrupted && context.interrupted()) return user_error("interrupted");
    feed->fill(*rank, step);
    program::Timeline timeline;
    WEFT_TRY_STATUS(rank->step(timeline));
    if (step >= kWarmUp) timelines.push_back(std::move(timeline));
  }
  const program::Program& program = rank->program();
  // The next prediction may use it; a database that cannot be written to is no reason not to measure.
  if (auto statistics = cost::Statistics::open({}, cost::Access::write); statistics.ok())
    (void)cost::learn(*statistics, program, timelines, {.workers = rank->workers()},
                      &explanation.cluster.device);
  return explain::Measurement{
      program::attribute(program, timelines,
                         explain::seconds_at_best(*explanation.graph, explanation.cluster.device),
                         rank->workers()),
      static_cast<double>(rank->bytes()),
      static_cast<double>(program.persistent_bytes + program.work_lower_bound)};
}

// Options that name a file to write; null for others.
std::string* file_option(ExplainOptions& options, std::string_view name) {
  if (same_word(name, "TIMELINE")) return &options.timeline;
  if (same_word(name, "PAGE")) return &options.page;
  if (same_word(name, "CHAKRA")) return &options.chakra;
  return nullptr;
}

Result<ExplainOptions> read_options(const language::syntax::Explain& statement, const Context& context) {
  ExplainOptions options;
  options.verbose = statement.verbose;
  options.analyze = statement.analyze;
  options.plan = statement.format == language::syntax::Format::plan;
  options.json = statement.format == language::syntax::Format::json || context.format == Format::json;
  for (const language::syntax::Option& option : statement.options) {
    const std::string_view name = option.name.text;
    if (same_word(name, "TRAIL") && !option.value) {
      options.trail = true;
    } else if (std::string* file = file_option(options, name)) {
      if (!option.value || option.value->kind != language::syntax::ValueKind::text ||
          option.value->text.empty())
        return user_error(fmt::format("{} needs the name of a file", upper(name)),
                          fmt::format("for example: {} 'step'", upper(name)), option.name.span);
      *file = option.value->text;
    } else {
      constexpr std::string_view kOptions[] = {"ANALYZE",  "VERBOSE", "FORMAT", "TRAIL",
                                               "TIMELINE", "PAGE",    "CHAKRA"};
      std::string hint = did_you_mean(name, kOptions);
      return user_error(fmt::format("EXPLAIN has no option {}", name),
                        hint.empty() ? "options are ANALYZE, VERBOSE, FORMAT text, FORMAT json, FORMAT plan, "
                                       "TRAIL, TIMELINE 'file', PAGE 'file', CHAKRA 'files'"
                                     : std::move(hint),
                        option.name.span);
    }
  }
  return options;
}

}  // namespace

Answer run_explain(const Session::State& state, const Context& context,
                   const language::syntax::Explain& statement) {
  const language::syntax::Run& run = *statement.run;
  WEFT_TRY(explain_options, read_options(statement, context));

  Settings settings = state.settings;
  WEFT_TRY(sizes, sizes_of(state.catalog, run.model));
  WEFT_TRY(overrides, apply_list(settings, run.settings, sizes, run.model.text));
  WEFT_TRY(target, target_of(state.catalog, run.target));
  const bool training = run.task == Task::train;
  language::BindOptions options{.mode = training ? language::Mode::train : language::Mode::infer,
                                .sizes = overrides,
                                .precision = settings.precision,
                                .plan_limit = settings.plan_limit,
                                .interrupted = context.interrupted};
  WEFT_TRY(bound, language::bind(state.catalog, run.model, options));

  explain::Explanation explanation;
  explanation.task = training ? "TRAIN" : "INFER";
  explanation.model = std::string(run.model.text);
  for (const language::BoundSize& size : bound.sizes) explanation.sizes.emplace_back(size.name, size.size);
  explanation.precision = settings.precision;
  explanation.settings.emplace_back("precision", plan::name(settings.precision));
  explanation.cluster = target;
  explanation.memory_limit = settings.memory_limit;
  for (const KeptHint& hint : state.hints) explanation.hints.push_back(hint.text);
  explanation.verbose = statement.verbose;

  train::TrainingPlan trained;
  if (!training && settings.rules) {
    WEFT_TRY(found, rewrite(bound.graph, target.device));
    bound.graph = std::move(found.plan);
    explanation.rewriting = {found.seconds_before, found.seconds_after, std::move(found.trail),
                             found.stopped};
  }
  if (training) {
    auto made = train::make_training_plan(std::move(bound.graph), settings.training);
    if (!made.ok()) {
      Error error = std::move(made).error();
      error.span = run.model.span;
      if (error.hint.empty()) error.hint = "training needs a loss and PARAMETERs that it depends on";
      return error;
    }
    trained = std::move(*made);
    explanation.graph = &trained.graph;
    explanation.kept = trained.kept;
    explanation.settings.emplace_back("optimizer", train::name(settings.training.optimizer));
    explanation.phases = {plan::Phase::forward, plan::Phase::backward, plan::Phase::update};
    explanation.memory = {{"parameters", trained.parameter_bytes},
                          {"gradients", trained.gradient_bytes},
                          {"optimizer", trained.optimizer_bytes},
                          {"states", bytes_of_sources(trained.graph, "state") - trained.optimizer_bytes},
                          {"activations", trained.activation_bytes},
                          {"inputs", bytes_of_sources(trained.graph, "input")}};
  } else {
    explanation.graph = &bound.graph;
    explanation.phases = {plan::Phase::forward};
    explanation.memory = {{"parameters", bytes_of_sources(bound.graph, "parameter")},
                          {"states", bytes_of_sources(bound.graph, "state")},
                          {"activations", cost::peak_live_bytes(bound.graph)},
                          {"inputs", bytes_of_sources(bound.graph, "input")}};
  }
  if (target.devices() > 1) {
    explain::DistributedExplanation about;
    about.task = explanation.task;
    about.model = explanation.model;
    about.sizes = explanation.sizes;
    about.settings = explanation.settings;
    about.precision = explanation.precision;
    about.cluster = target;
    return explain_distributed(state, context, settings, run, *explanation.graph, std::move(about),
                               explain_options);
  }
  if (explain_options.plan) return plan::print(*explanation.graph);
  if (statement.analyze) {
    auto measurement = measure(state, context, run, explanation);
    if (!measurement.ok()) {
      Error error = std::move(measurement).error();
      if (!error.span.known()) error.span = statement.span;
      return error;
    }
    explanation.measurement = std::move(*measurement);
  }
  return explain_options.json ? explain::print_json(explanation) : explain::print_text(explanation);
}

}  // namespace weft::session
