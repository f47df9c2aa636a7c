#include "weft/app/session/measure_pipeline.h"

#include <algorithm>
#include <map>

#include "weft/app/session/learn.h"
#include "weft/app/session/measure_distributed.h"
#include "weft/base/background_load.h"
#include "weft/base/median.h"
#include "weft/parallel/pipeline/pipelined_plan.h"
#include "weft/predict/cost/mesh_links.h"
#include "weft/predict/cost/operator_time.h"
#include "weft/predict/cost/statistics.h"
#include "weft/runtime/run/batch_prefetcher.h"
#include "weft/runtime/run/feed.h"
#include "weft/runtime/run/local_ranks_run.h"

namespace weft::session {
namespace {

using program::Program;
using program::Timeline;
using train::Pass;

constexpr std::int64_t kWarmUpInTime = 3;  // steps that touch memory for the first time
constexpr std::int64_t kStepsInTime = 10, kMostStepsInTime = 10'000;

// A rank's program, and the pass that each unit belongs to.
struct RankProgram {
  std::shared_ptr<const Program> program;
  std::vector<pipeline::Pass> passes;  // by turn
  std::vector<Pass> work;              // by unit
};

Result<RankProgram> unrolled_program(const distribute::DistributedPlan& plan, std::int32_t rank,
                                     int workers) {
  WEFT_TRY(made, pipeline::unroll(plan, rank));
  WEFT_TRY(compiled, program::compile(std::make_shared<plan::Graph>(std::move(made.graph)),
                                      {.workers = workers, .turns = made.turns}));
  RankProgram found;
  Pass last = Pass::update;
  for (const program::Unit& unit : compiled.units) {
    if (!unit.nodes.empty()) last = made.work[unit.nodes.front().value];
    found.work.push_back(last);
  }
  found.passes = std::move(made.passes);
  found.program = std::make_shared<const Program>(std::move(compiled));
  return found;
}

// Passes wait for messages between stages; collectives within a stage are part of a pass.
bool is_message(const program::Unit& unit) {
  const auto* exchange = std::get_if<program::Exchange>(&unit.kernel);
  return exchange != nullptr && (exchange->kind == program::Exchange::Kind::send ||
                                 exchange->kind == program::Exchange::Kind::receive);
}

struct TimeStretch {
  double begin = 0, end = 0;
};

// The length of the union of the intervals.
double covered_seconds(std::vector<TimeStretch> stretches) {
  std::ranges::sort(stretches, {}, &TimeStretch::begin);
  double until = -1e300, seconds = 0;
  for (const TimeStretch& stretch : stretches) {
    seconds += std::max(0.0, stretch.end - std::max(until, stretch.begin));
    until = std::max(until, stretch.end);
  }
  return seconds;
}

// A rank's activity in one step.
struct RankStep {
  double forward = 0, backward = 0, weight = 0, update = 0;  // summed over micro-batches
  std::vector<pipeline::Slot> slots;                         // by pass
  double busy() const { return forward + backward + weight + update; }
};

RankStep passes_of_step(const RankProgram& rank, const Timeline& timeline) {
  const Program& program = *rank.program;
  struct Turn {
    std::vector<TimeStretch> stretches;
    std::map<Pass, double> seconds;  // summed over workers
  };
  std::vector<Turn> turns(rank.passes.size() + 1);
  for (std::size_t t = 0; t < timeline.tasks.size(); ++t) {
    const std::uint32_t unit = program.tasks[t].unit;
    if (is_message(program.units[unit])) continue;
    Turn& turn = turns[std::min<std::size_t>(program.units[unit].turn, rank.passes.size())];
    const program::TaskTime& time = timeline.tasks[t];
    turn.stretches.push_back({time.begin, time.end});
    turn.seconds[rank.work[unit]] += time.end - time.begin;
  }
  RankStep step;
  for (std::size_t k = 0; k < turns.size(); ++k) {
    Turn& turn = turns[k];
    // Tasks can run early while an earlier pass waits for a message: a pass starts when the
    // previous one ends.
    const double over = step.slots.empty() ? 0 : step.slots.back().end;
    pipeline::Slot slot{over, over};
    if (!turn.stretches.empty()) {
      const auto begins = std::ranges::min(turn.stretches, {}, &TimeStretch::begin).begin;
      const auto ends = std::ranges::max(turn.stretches, {}, &TimeStretch::end).end;
      slot.begin = std::max(over, begins);
      slot.end = std::max(slot.begin, ends);
    }
    if (k < rank.passes.size()) step.slots.push_back(slot);
    double all = 0;
    for (const auto& [pass, seconds] : turn.seconds) all += seconds;
    const double lasted = covered_seconds(std::move(turn.stretches));
    for (const auto& [pass, seconds] : turn.seconds) {
      double& spent = k == rank.passes.size()  ? step.update
                      : pass == Pass::forward  ? step.forward
                      : pass == Pass::backward ? step.backward
                                               : step.weight;
      spent += all > 0 ? lasted * seconds / all : 0;
    }
  }
  return step;
}

double end_in_time(const Timeline& timeline) {
  double end = 0;
  for (const program::TaskTime& task : timeline.tasks) end = std::max(end, task.end);
  return end;
}

// The mean over a stage's ranks of the median of `figure` over the steps.
template <class Figure>
double typical(const std::vector<std::vector<RankStep>>& ranks, const std::vector<std::size_t>& of_stage,
               const Figure& figure) {
  double sum = 0;
  for (const std::size_t rank : of_stage) {
    std::vector<double> values;
    for (const RankStep& step : ranks[rank]) values.push_back(figure(step));
    sum += median(std::move(values));
  }
  return sum / static_cast<double>(of_stage.size());
}

struct Steps {
  std::vector<std::vector<Timeline>> timelines;  // by rank
  double bytes = 0;
  int workers = 1;
  std::string ranks;
};

Result<Steps> run_alone(const Context& context, const Prepared& prepared, const run::Feed& feed,
                        const distribute::DistributedPlan& plan, std::int64_t steps) {
  WEFT_TRY(made, pipeline::unroll(plan, 0));
  WEFT_TRY(rank, start_rank(std::move(made.graph), prepared, {.turns = made.turns}));
  WEFT_TRY_STATUS(run::write_initial(*rank, static_cast<std::uint64_t>(prepared.settings.running.seed)));
  Steps found;
  found.timelines.resize(1);
  run::BatchPrefetcher batches(*rank, feed);
  for (std::int64_t step = 0; step < kWarmUpInTime + steps; ++step) {
    if (context.interrupted && context.interrupted()) return user_error("interrupted");
    batches.bring(step);
    Timeline timeline;
    WEFT_TRY_STATUS(rank->step(timeline));
    if (step >= kWarmUpInTime) found.timelines.front().push_back(std::move(timeline));
  }
  found.bytes = static_cast<double>(rank->bytes());
  found.workers = rank->workers();
  found.ranks = "one rank";
  return found;
}

Result<Steps> run_on_ranks(const Context& context, const Prepared& prepared, const run::Feed& feed,
                           const distribute::DistributedPlan& plan, std::int64_t steps) {
  WEFT_TRY(options, local_ranks_of(prepared, {}));
  run::Weights start;
  start.seed = static_cast<std::uint64_t>(prepared.settings.running.seed);
  run::DistributedRun request;
  request.training = {.first_step = 0, .steps = kWarmUpInTime + steps, .interrupted = context.interrupted};
  request.measure_from = kWarmUpInTime;
  WEFT_TRY(outcome, run::run_distributed(plan, options, feed, start, request));
  if (outcome.training.interrupted) return user_error("interrupted");
  if (outcome.timelines.empty() || outcome.timelines.front().empty())
    return environment_error("the ranks ran, but nothing was measured");
  return Steps{std::move(outcome.timelines), static_cast<double>(outcome.bytes), options.workers,
               describe_ranks(options, prepared.target.has_several_hosts())};
}

// A database that cannot be written is not an error here.
void remember_units(const Prepared& prepared, const std::vector<RankProgram>& programs, const Steps& steps) {
  const cost::Concurrency concurrency{static_cast<int>(prepared.ranks), steps.workers};
  if (cost::is_oversubscribed(concurrency)) return;  // waiting for a processor would count as computing
  auto statistics = cost::Statistics::open({}, cost::Access::write);
  if (!statistics.ok()) return;
  for (std::size_t rank = 0; rank < programs.size(); ++rank)
    (void)cost::learn(*statistics, *programs[rank].program, steps.timelines[rank], concurrency,
                      &prepared.target.device);
}

}  // namespace

Result<PipelineMeasurement> measure_pipeline(const Session::State& state, const Context& context,
                                             const Prepared& prepared, const search::Choice& choice) {
  const distribute::DistributedPlan& plan = choice.spread->chosen.plan;
  const distribute::Distribution& distribution = plan.time->distribution;
  const language::syntax::Run& run = *prepared.run;
  WEFT_TRY_STATUS(check_runs_here(prepared));
  WEFT_TRY(feed, feed_to_measure(prepared.settings, run, prepared.plan.graph));
  const std::int64_t count =
      std::clamp<std::int64_t>(run.steps ? run.steps->whole : kStepsInTime, 1, kMostStepsInTime);
  const BackgroundLoad others;
  WEFT_TRY(steps, prepared.ranks == 1 ? run_alone(context, prepared, *feed, plan, count)
                                      : run_on_ranks(context, prepared, *feed, plan, count));
  const bool several_hosts = prepared.target.has_several_hosts();
  const bool remembered =
      !several_hosts && !prepared.target.on_gpu() && is_remembered(state, prepared.settings, others.share());

  std::vector<RankProgram> programs;
  std::vector<std::vector<RankStep>> seen;
  for (std::size_t rank = 0; rank < steps.timelines.size(); ++rank) {
    WEFT_TRY(made, unrolled_program(plan, static_cast<std::int32_t>(rank), steps.workers));
    programs.push_back(std::move(made));
    std::vector<RankStep>& own = seen.emplace_back();
    for (const Timeline& timeline : steps.timelines[rank])
      own.push_back(passes_of_step(programs.back(), timeline));
  }
  std::vector<double> seconds;
  for (std::size_t s = 0; s < steps.timelines.front().size(); ++s) {
    double end = 0;
    for (const auto& rank : steps.timelines) end = std::max(end, end_in_time(rank[s]));
    seconds.push_back(end);
  }
  PipelineMeasurement found;
  explain::Measured& step = found.step;
  step.times.steps = seconds.size();
  step.ranks = steps.ranks;
  step.memory_bytes = steps.bytes;
  step.times.workers = steps.workers;
  step.times.step_seconds = median(seconds);
  const auto typical_step = static_cast<std::size_t>(
      std::ranges::min_element(seconds, {}, [&](double s) { return std::abs(s - step.times.step_seconds); }) -
      seconds.begin());

  const auto axis = distribute::stage_axis(distribution);
  const auto stages = static_cast<std::size_t>(axis ? distribution.mesh.axes[*axis].ranks : 1);
  std::vector<std::vector<std::size_t>> of_stage(stages);
  for (std::size_t rank = 0; rank < programs.size(); ++rank) {
    const std::int32_t stage = pipeline::stage_of(distribution, static_cast<std::int32_t>(rank));
    of_stage[static_cast<std::size_t>(stage)].push_back(rank);
    found.ranks.push_back({static_cast<std::int32_t>(rank), stage, programs[rank].passes,
                           programs[rank].program, steps.timelines[rank][typical_step],
                           seen[rank][typical_step].slots});
  }
  const auto micro = static_cast<double>(distribution.micro_batches);
  double busiest = -1;
  for (std::size_t s = 0; s < stages; ++s) {
    explain::Measured::Stage stage;
    stage.forward = typical(seen, of_stage[s], [](const RankStep& one) { return one.forward; }) / micro;
    stage.backward = typical(seen, of_stage[s], [](const RankStep& one) { return one.backward; }) / micro;
    stage.weight = typical(seen, of_stage[s], [](const RankStep& one) { return one.weight; }) / micro;
    stage.update = typical(seen, of_stage[s], [](const RankStep& one) { return one.update; });
    const double passes = micro * (stage.forward + stage.backward + stage.weight);
    stage.idle = std::max(0.0, step.times.step_seconds - passes - stage.update);
    if (passes > busiest) {
      busiest = passes;
      step.bubble = stage.idle;
    }
    step.stages.push_back(stage);
    step.slots.push_back(seen[of_stage[s].front()][typical_step].slots);
  }
  if (remembered) remember_units(prepared, programs, steps);
  return found;
}

}  // namespace weft::session
