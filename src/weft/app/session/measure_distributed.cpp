#include "weft/app/session/measure_distributed.h"

#include <algorithm>

#include <fmt/format.h>

#include "weft/app/session/learn.h"
#include "weft/base/background_load.h"
#include "weft/base/machine.h"
#include "weft/base/median.h"
#include "weft/planner/step/plan_for.h"
#include "weft/predict/cost/exchange_times.h"
#include "weft/predict/cost/operator_time.h"
#include "weft/predict/cost/oversubscribed_costs.h"
#include "weft/predict/cost/statistics.h"
#include "weft/predict/cost/step_costs.h"
#include "weft/predict/sim/step/predict.h"
#include "weft/program/tasks/attribution.h"
#include "weft/program/tasks/step_parts.h"
#include "weft/runtime/run/feed.h"
#include "weft/runtime/run/local_ranks_run.h"

namespace weft::session {
namespace {

using program::Program;
using program::Timeline;

constexpr std::int64_t kWarmUp = 3;  // steps that touch memory for the first time
constexpr std::int64_t kMeasuredSteps = 10, kMostSteps = 10'000;

// The total task time of each unit.
std::vector<double> unit_seconds(const Program& program, const Timeline& timeline) {
  std::vector<double> seconds(program.units.size());
  for (std::size_t t = 0; t < timeline.tasks.size(); ++t)
    seconds[program.tasks[t].unit] += timeline.tasks[t].end - timeline.tasks[t].begin;
  return seconds;
}

// The median of |predicted - measured| / measured over units that take a significant time.
double median_error(const Program& program, const plan::Mesh& mesh, const cost::StepCosts& costs,
                    std::span<const double> measured) {
  constexpr double kLeast = 1e-6;
  std::vector<double> predicted(program.units.size()), errors;
  for (const program::Task& task : program.tasks)
    if (const auto* exchange = std::get_if<program::Exchange>(&program.units[task.unit].kernel))
      predicted[task.unit] += costs
                                  .exchange(*exchange, static_cast<std::size_t>(mesh.find(exchange->axis)),
                                            cost::message_bytes(*exchange))
                                  .seconds();
    else
      predicted[task.unit] += costs.compute(program, task).seconds;
  for (std::size_t u = 0; u < measured.size(); ++u)
    if (measured[u] > kLeast) errors.push_back(std::abs(predicted[u] - measured[u]) / measured[u]);
  return errors.empty() ? 0 : median(std::move(errors));
}

// The typical time of each unit over the steps.
std::vector<double> typical_units(const Program& program, std::span<const Timeline> timelines,
                                  const cost::Concurrency& concurrency) {
  std::vector<std::vector<double>> by_unit(program.units.size());
  for (const Timeline& timeline : timelines) {
    const std::vector<double> seconds = unit_seconds(program, timeline);
    for (std::size_t u = 0; u < seconds.size(); ++u) by_unit[u].push_back(seconds[u]);
  }
  std::vector<double> typical;
  for (std::vector<double>& seconds : by_unit)
    typical.push_back(seconds.empty() ? 0 : cost::typical_seconds(std::move(seconds), concurrency));
  return typical;
}

double end_of(const Timeline& timeline) {
  double end = 0;
  for (const program::TaskTime& task : timeline.tasks) end = std::max(end, task.end);
  return end;
}

std::string_view name_of(comm::TransportKind transport) {
  return comm::name(transport == comm::TransportKind::automatic ? comm::TransportKind::shm : transport);
}

// Saves the times of units and collectives, and computes prediction errors before and after saving.
// A database that cannot be written is not an error here.
Status learn_from(const run::DistributedOutcome& outcome, const run::LocalRanksOptions& options,
                  const Settings& settings, const cluster::Cluster& cluster,
                  const distribute::DistributedPlan& plan, std::int32_t shown, bool remembered,
                  DistributedMeasurement& found) {
  const cost::Concurrency concurrency{options.ranks, options.workers};
  const exchange::CostsOn costs = costs_of(cluster, settings, options.workers);
  const Program& program = *found.ranks[static_cast<std::size_t>(shown)].program;
  std::vector<cost::RankSteps> ranks;
  for (std::size_t rank = 0; rank < found.ranks.size(); ++rank)
    ranks.push_back({found.ranks[rank].program.get(), outcome.timelines[rank]});
  std::vector<std::vector<Timeline>> costs_of_tasks;
  if (cost::is_oversubscribed(concurrency)) {
    costs_of_tasks = cost::oversubscribed_costs(ranks, concurrency, available_processors());
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) ranks[rank].timelines = costs_of_tasks[rank];
  }
  const std::span<const Timeline> timelines = ranks[static_cast<std::size_t>(shown)].timelines;
  const std::vector<double> measured = typical_units(program, timelines, concurrency);
  {
    const auto known = cost::Statistics::open({}, cost::Access::read);
    WEFT_TRY(before, costs(plan.mesh, known.ok() ? &*known : nullptr));
    found.step.error_before = median_error(program, plan.mesh, before, measured);
  }
  if (!remembered) return {};
  auto statistics = cost::Statistics::open({}, cost::Access::write);
  if (!statistics.ok()) return {};
  if (!cost::learn(*statistics, program, timelines, concurrency, &cluster.device).ok() ||
      !cost::record_exchanges(*statistics, plan.mesh, ranks,
                              cost::transport_with_servers(name_of(options.transport), settings.servers),
                              concurrency)
           .ok())
    return {};
  WEFT_TRY(after, costs(plan.mesh, &*statistics));
  found.step.error_after = median_error(program, plan.mesh, after, measured);
  WEFT_TRY(again, sim::predict(plan.graph, plan.mesh, plan.layouts, after,
                               {.overlap = options.overlap, .timeline = false, .workers = options.workers}));
  found.step.predicted_after = again.seconds;
  return {};
}

}  // namespace

std::string describe_ranks(const run::LocalRanksOptions& options, bool several_hosts) {
  const std::string_view over = several_hosts                                   ? "processes on several hosts"
                                : options.gpu != nullptr                        ? "threads on one GPU"
                                : options.transport == comm::TransportKind::tcp ? "processes over TCP"
                                : options.transport == comm::TransportKind::inproc
                                    ? "threads"
                                    : "processes over shared memory";
  return fmt::format("{} {}{}{}", options.ranks, over,
                     options.workers > 1 ? fmt::format(" of {} threads", options.workers) : std::string(),
                     options.overlap ? ", communication overlapping computation" : "");
}

Result<std::unique_ptr<run::Feed>> feed_to_measure(const Settings& settings, const language::syntax::Run& run,
                                                   const plan::Graph& graph) {
  if (run.data.empty()) return run::made_up_feed(graph, 0);
  auto opened = run::open_feed(data_of(run), graph, {settings.running.holdout, 0});
  if (!opened.ok()) {
    Error error = std::move(opened).error();
    error.span = run.data[0].file.span;
    if (error.hint.empty()) error.hint = "without FROM, weft measures synthetic data";
    return error;
  }
  return opened;
}

Result<DistributedMeasurement> measure_distributed(const Session::State& state, const Context& context,
                                                   const Prepared& prepared,
                                                   const search::DistributionChoice& choice,
                                                   std::int32_t shown) {
  const distribute::DistributedPlan& plan = choice.chosen.plan;
  const language::syntax::Run& run = *prepared.run;
  const Settings& settings = prepared.settings;
  const cluster::Cluster& cluster = prepared.target;
  WEFT_TRY(feed, feed_to_measure(settings, run, plan.graph));
  const std::int64_t steps =
      std::clamp<std::int64_t>(run.steps ? run.steps->whole : kMeasuredSteps, 1, kMostSteps);
  WEFT_TRY_STATUS(check_runs_here(prepared));
  WEFT_TRY(options, local_ranks_of(prepared, choice.chosen.prediction));
  run::Weights start;
  start.seed = static_cast<std::uint64_t>(settings.running.seed);
  run::DistributedRun request;
  request.training = {.first_step = 0, .steps = kWarmUp + steps, .interrupted = context.interrupted};
  request.measure_from = kWarmUp;
  const BackgroundLoad others;
  WEFT_TRY(outcome, run::run_distributed(plan, options, *feed, start, request));
  // Statistics are per machine.
  const bool several_hosts = prepared.target.has_several_hosts();
  const bool remembered =
      !several_hosts && !prepared.target.on_gpu() && is_remembered(state, settings, others.share());
  if (outcome.training.interrupted) return user_error("interrupted");
  if (outcome.timelines.empty() || outcome.timelines.front().empty())
    return environment_error("the ranks ran, but nothing was measured");

  DistributedMeasurement found;
  const std::size_t count = outcome.timelines.front().size();
  found.step.ranks = describe_ranks(options, several_hosts);
  found.step.memory_bytes = static_cast<double>(outcome.bytes);
  std::vector<double> seconds;
  for (std::size_t s = 0; s < count; ++s) {
    double end = 0;
    for (const auto& rank : outcome.timelines) end = std::max(end, end_of(rank[s]));
    seconds.push_back(end);
  }
  const double slowest = median(seconds);  // of the slowest rank in each step
  const auto typical = static_cast<std::size_t>(
      std::ranges::min_element(seconds, {}, [&](double s) { return std::abs(s - slowest); }) -
      seconds.begin());

  // Compilation is deterministic: this recreates each rank's program as it ran.
  for (std::int32_t rank = 0; rank < options.ranks; ++rank) {
    WEFT_TRY(compiled, run::compile_for_rank(plan, rank, options));
    found.ranks.push_back({std::make_shared<const Program>(std::move(compiled)),
                           outcome.timelines[static_cast<std::size_t>(rank)][typical]});
  }
  const Program& program = *found.ranks[static_cast<std::size_t>(shown)].program;
  const auto& timelines = outcome.timelines[static_cast<std::size_t>(shown)];
  found.step.times = program::attribute(
      program, timelines, explain::seconds_at_best(*program.graph, cluster.device), options.workers);
  found.step.times.step_seconds = slowest;
  found.step.times.steps = count;
  std::vector<double> exposed;
  for (const Timeline& timeline : timelines)
    exposed.push_back(program::step_parts(program, timeline).exposed);
  found.step.exposed_communication_seconds = median(std::move(exposed));
  WEFT_TRY_STATUS(learn_from(outcome, options, settings, cluster, plan, shown, remembered, found));
  return found;
}

}  // namespace weft::session
