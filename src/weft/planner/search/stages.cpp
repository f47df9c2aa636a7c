#include "weft/planner/search/stages.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "weft/base/units.h"
#include "weft/plan/ops/operators.h"
#include "weft/planner/search/bucket/bucket_exchanges.h"
#include "weft/planner/search/bucket/partition_all_reduces.h"
#include "weft/planner/search/codec/choose_codecs.h"
#include "weft/planner/search/codec/encode_boundaries.h"
#include "weft/planner/search/requirements.h"
#include "weft/planner/search/rewrite/rewrite_communication.h"
#include "weft/planner/search/rewrite/rewrite_step.h"
#include "weft/planner/search/sync/delay_gradients.h"
#include "weft/planner/search/sync/sync_every.h"
#include "weft/planner/search/tile/tile_exchanges.h"
#include "weft/predict/cost/plan_cost.h"

namespace weft::search {
namespace {

using Clock = std::chrono::steady_clock;

std::string rewrites(std::size_t steps) { return fmt::format("{} rewrite{}", steps, steps == 1 ? "" : "s"); }

// Whether a rule removed a STATE that the plan updates. Rules keep only what outputs read, and
// would drop a STATE that is updated but never read.
bool lacks_what_it_renews(const plan::Graph& plan) {
  std::set<std::string_view> sources;
  for (std::size_t n = 0; n < plan.node_count(); ++n) {
    const plan::NodeView node = plan.view(plan::NodeId(n));
    if (&node.op() == &ops::state() || &node.op() == &ops::parameter()) sources.insert(node.word(0));
  }
  return std::ranges::any_of(plan.outputs(), [&](const plan::Output& output) {
    return output.updates.valid() && !sources.contains(plan.text(output.updates));
  });
}

// Share of the time limit; the rest is for the distribution.
constexpr double kRewriteShare = 0.2;

Result<Choice> rewrite_stage(const Problem& problem, Choice choice, StageReport& report) {
  WEFT_TRY(found, rewrite_step(choice.plan, problem.cluster->device, problem.rules, problem.prove,
                               {.learns = problem.learns,
                                .least_gain = problem.least_gain,
                                .machine = problem.least_gain > 0 ? problem.alone : nullptr,
                                .rewrites = problem.rewrites,
                                .seconds = kRewriteShare * seconds_until(problem.until)}));
  report.said = found.why_not;
  choice.stopped = found.stopped;
  if (!found.plan) return choice;
  if (lacks_what_it_renews(*found.plan)) {
    report.said = "the plan as written: it updates a STATE that nothing reads";
    return choice;
  }
  choice.plan = std::move(*found.plan);
  choice.seconds_at_best = found.seconds_after;
  choice.trail = std::move(found.trail);
  choice.rewritten = true;
  report.changed = true;
  report.said = rewrites(choice.trail.size());
  return choice;
}

// Rules were judged on one device. On several, the original plan may be better, since merged
// products cannot be sliced separately. Then it is restored.
Result<Choice> distribute_stage(const Problem& problem, Choice choice, StageReport& report) {
  ChooseOptions options = problem.distribution;
  options.until = problem.until;
  options.alternatives = options.alternatives || !options.given;  // they compete
  const auto spread_of = [&](const plan::Graph& plan) {
    return choose_distribution(plan, *problem.cluster, *problem.machine, options);
  };
  const bool twice = choice.rewritten;
  if (twice) options.advise = {};
  // Each of the two searches gets half of the time.
  if (const double left = seconds_until(problem.until); twice && std::isfinite(left))
    options.until -= std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(left / 2));
  Result<DistributionChoice> spread = spread_of(choice.plan);
  options.until = problem.until;
  if (twice) {
    if (!spread.ok()) options.advise = problem.distribution.advise;
    Result<DistributionChoice> written = spread_of(*problem.plan);
    const bool pays =
        spread.ok() && (!written.ok() || spread->chosen.prediction.seconds <=
                                             (1 - problem.least_gain) * written->chosen.prediction.seconds);
    if (!pays) {
      choice.plan = problem.plan->clone();
      choice.seconds_at_best = choice.seconds_before;
      choice.trail.clear();
      choice.rewritten = false;
      spread = std::move(written);
      report.said = "the plan as written; ";
    }
  }
  if (!spread.ok()) return std::move(spread).error();
  report.changed = true;
  report.tried = spread->outcome.estimates;
  report.said += distribute::print(spread->distribution);
  choice.spread = std::move(*spread);
  return choice;
}

Result<Choice> rewrite_communication_stage(const Problem& problem, Choice choice, StageReport& report) {
  WEFT_TRY(found, rewrite_communication(choice.spread->chosen, *problem.machine, problem.cluster->device,
                                        problem.rules, problem.prove,
                                        {.least_gain = problem.least_gain,
                                         .memory_bytes = problem.distribution.memory_bytes,
                                         .seconds = seconds_until(problem.until)}));
  report.said = found.why_not;
  if (!found.plan || lacks_what_it_renews(found.plan->plan.graph)) return choice;
  if (const Status kept = check_requirements(problem.distribution.asked, found.plan->plan); !kept.ok()) {
    report.said = kept.error().message;
    return choice;
  }
  choice.spread->chosen = std::move(*found.plan);
  choice.communication_trail = std::move(found.trail);
  report.changed = true;
  report.said = rewrites(choice.communication_trail.size());
  return choice;
}

BucketOptions bucket_options(const Problem& problem) {
  return {.least_gain = problem.least_gain,
          .memory_bytes = problem.distribution.memory_bytes,
          .fixed_bytes = problem.bucket_bytes};
}

// The averaging cost per step is reported separately, since the predicted step does not include it.
Result<Choice> sync_stage(const Problem& problem, Choice choice, StageReport& report) {
  const std::int64_t every = problem.distribution.asked.sync_every;
  WEFT_TRY(made, sync_every(choice.spread->chosen.plan, every));
  const plan::Mesh& mesh = made.plan.mesh;
  WEFT_TRY(costs, problem.machine->costs(mesh));
  double seconds = 0;
  for (const std::size_t axis : made.axes) {
    program::Exchange exchange;
    exchange.axis = mesh.axes[axis].name;
    seconds += costs.exchange(exchange, axis, made.bytes).seconds();
  }
  const auto steps = static_cast<double>(every);
  report.said = fmt::format(
      "{} gradient{} not summed across ranks; every {} steps {} of parameters are averaged in {}: {} and {} "
      "per "
      "step",
      made.gradients, made.gradients == 1 ? "" : "s", every, print_bytes(static_cast<double>(made.bytes)),
      print_seconds(seconds), print_bytes(static_cast<double>(made.bytes) / steps),
      print_seconds(seconds / steps));
  choice.averages = report.said;
  report.changed = true;
  WEFT_TRY(prediction,
           sim::predict(made.plan.graph, mesh, made.plan.layouts, costs,
                        {.overlap = problem.machine->overlap, .workers = problem.machine->workers}));
  choice.spread->chosen = {std::move(made.plan), std::move(prediction)};
  return choice;
}

Result<Choice> delay_stage(const Problem& problem, Choice choice, StageReport& report) {
  constexpr std::pair<DelayedSums, std::string_view> kStands[] = {
      {DelayedSums::after_forward, "after its forward pass"},
      {DelayedSums::first, "from its start"},
      {DelayedSums::first_at_low_priority, "from its start, at low priority"}};
  std::optional<PredictedPlan> best;
  for (const auto& [stand, when] : kStands) {
    WEFT_TRY(made, delay_gradients(choice.spread->chosen.plan, stand));
    WEFT_TRY(costs, problem.machine->costs(made.plan.mesh));
    WEFT_TRY(prediction,
             sim::predict(made.plan.graph, made.plan.mesh, made.plan.layouts, costs,
                          {.overlap = problem.machine->overlap, .workers = problem.machine->workers}));
    if (best && prediction.seconds >= best->prediction.seconds) continue;
    report.said = fmt::format(
        "{} gradient{} summed and applied one step later, {}; {} of them are kept per rank", made.gradients,
        made.gradients == 1 ? " is" : "s are", when, print_bytes(static_cast<double>(made.bytes)));
    best = {std::move(made.plan), std::move(prediction)};
  }
  choice.delayed = report.said;
  report.changed = true;
  choice.spread->chosen = std::move(*best);
  return choice;
}

Result<Choice> codecs_stage(const Problem& problem, Choice choice, StageReport& report) {
  ChooseCodecsOptions options{.memory_bytes = problem.distribution.memory_bytes, .until = problem.until};
  // Buckets may be faster than codecs for small gradients.
  if (!is_off(problem, kBucketStage))
    options.finished = [&](const PredictedPlan& plan) -> Result<double> {
      WEFT_TRY(found, bucket_exchanges(plan, *problem.machine, bucket_options(problem)));
      return found.plan ? found.plan->prediction.seconds : plan.prediction.seconds;
    };
  WEFT_TRY(chosen, choose_codecs(choice.spread->chosen, *problem.machine, problem.codecs, options));
  // There are no pipeline stages here.
  if (problem.codecs.activations.any())
    chosen.exchanges.push_back({.what = kActivations, .codec = problem.codecs.activations.codecs.front()});
  std::vector<std::string> said;
  for (const CodedExchanges& kind : chosen.exchanges) said.push_back(print(kind));
  report.said = fmt::format("{}", fmt::join(said, "; "));
  report.changed = chosen.plan.has_value();
  choice.coded = std::move(chosen.exchanges);
  if (chosen.plan) choice.spread->chosen = std::move(*chosen.plan);
  return choice;
}

Result<Choice> bucket_stage(const Problem& problem, Choice choice, StageReport& report) {
  WEFT_TRY(found, bucket_exchanges(choice.spread->chosen, *problem.machine, bucket_options(problem)));
  report.said = found.said;
  report.changed = found.plan.has_value();
  if (found.plan) choice.spread->chosen = std::move(*found.plan);
  return choice;
}

Result<Choice> decompose_stage(const Problem& problem, Choice choice, StageReport& report) {
  WEFT_TRY(found, tile_exchanges(choice.spread->chosen, *problem.machine,
                                 {.least_gain = problem.least_gain,
                                  .memory_bytes = problem.distribution.memory_bytes,
                                  .tiles = problem.tiles}));
  report.said = found.said;
  report.changed = found.plan.has_value();
  if (found.plan) choice.spread->chosen = std::move(*found.plan);
  return choice;
}

Result<Choice> credit_stage(const Problem& problem, Choice choice, StageReport& report) {
  const double credit = problem.distribution.asked.credit;
  WEFT_TRY(found, partition_all_reduces(choice.spread->chosen, *problem.machine,
                                        {.least_gain = problem.least_gain,
                                         .memory_bytes = problem.distribution.memory_bytes,
                                         .credit = credit}));
  report.said = found.said;
  report.changed = found.plan.has_value();
  if (found.plan || credit > 0) choice.credit = found.said;
  if (found.plan) choice.spread->chosen = std::move(*found.plan);
  return choice;
}

// Reports the algorithms that the simulation of the step assumed (cost/choose_algorithms.h).
Result<Choice> choose_algorithms_stage(const Problem&, Choice choice, StageReport& report) {
  std::map<std::string, std::size_t> times;
  for (const sim::EstimatedCollective& collective : choice.spread->chosen.prediction.collectives)
    times[collective.price.algorithm.empty() ? "by formula" : collective.price.algorithm] += collective.times;
  std::vector<std::string> said;
  for (const auto& [algorithm, count] : times) said.push_back(fmt::format("{} {}", count, algorithm));
  report.said = said.empty() ? "nothing is exchanged" : fmt::format("{}", fmt::join(said, ", "));
  return choice;
}

// The prediction already simulates the programs in the order in which they run.
Result<Choice> schedule_stage(const Problem&, Choice choice, StageReport& report) {
  const sim::Prediction& prediction = choice.spread->chosen.prediction;
  report.said =
      fmt::format("{} of {} of communication hidden",
                  print_seconds(std::max(
                      prediction.communication_seconds - prediction.exposed_communication_seconds, 0.0)),
                  print_seconds(prediction.communication_seconds));
  return choice;
}

// False if the user requires codecs at any cost.
bool picks_codecs(const Problem& problem) {
  return !problem.codecs.gradients.always && !problem.codecs.weights.always;
}

constexpr Stage kStages[] = {
    {.name = "rewrite", .purpose = "apply rewrite rules to the plan of one device", .run = rewrite_stage},
    {.name = kDistributeStage,
     .purpose = "distribute the plan over the devices of the cluster",
     .several = true,
     .run = distribute_stage},
    {.name = "rewrite communication",
     .purpose = "apply rewrite rules that split, merge and move collectives",
     .several = true,
     .searches = true,
     .run = rewrite_communication_stage,
     .is_optional = [](const Problem&) { return true; }},
    {.name = "local sgd",
     .purpose = "update parameters on each rank and average them every few steps",
     .several = true,
     .run = sync_stage,
     .is_needed = [](const Problem& problem) { return problem.distribution.asked.sync_every > 1; }},
    {.name = "delay gradients",
     .purpose = "reduce gradients during the next step, which applies them",
     .several = true,
     .run = delay_stage,
     .is_needed = [](const Problem& problem) { return problem.distribution.asked.delay > 0; }},
    {.name = kCodecsStage,
     .purpose = "compress gradients and weights for communication",
     .several = true,
     .run = codecs_stage,
     .is_needed = [](const Problem& problem) { return problem.codecs.any(); },
     .is_optional = picks_codecs},
    {.name = kBucketStage,
     .purpose = "reduce gradients that are ready at about the same time in one call",
     .several = true,
     .run = bucket_stage,
     .is_optional = [](const Problem& problem) { return problem.bucket_bytes == 0; }},
    {.name = kTileStage,
     .purpose = "split collectives into tiles that overlap with the products beside them",
     .several = true,
     .searches = true,
     .run = decompose_stage,
     .is_optional = [](const Problem& problem) { return problem.tiles == 0; }},
    {.name = kPartitionStage,
     .purpose = "partition long all-reduces, so that results needed first arrive first",
     .several = true,
     .searches = true,
     .run = credit_stage},
    {.name = "choose algorithms",
     .purpose = "choose the fastest algorithm for each collective",
     .several = true,
     .run = choose_algorithms_stage},
    {.name = "schedule",
     .purpose = "order the tasks of each rank and simulate the step",
     .several = true,
     .run = schedule_stage},
};

}  // namespace

std::string_view current_stage_name(std::string_view name) {
  // Old and new names.
  constexpr std::pair<std::string_view, std::string_view> kRenamed[] = {{"sync", "local sgd"},
                                                                        {"delay", "delay gradients"},
                                                                        {"decompose", kTileStage},
                                                                        {"credit", kPartitionStage}};
  for (const auto& [before, now] : kRenamed)
    if (before == name) return now;
  return name;
}

bool is_off(const Problem& problem, std::string_view stage) {
  return std::ranges::find(problem.off, stage) != problem.off.end();
}

double seconds_until(Clock::time_point when) {
  if (when == Clock::time_point::max()) return std::numeric_limits<double>::infinity();
  return std::max(0.0, std::chrono::duration<double>(when - Clock::now()).count());
}

std::span<const Stage> stages() { return kStages; }

std::vector<std::string_view> stage_names() {
  std::vector<std::string_view> names;
  for (const Stage& stage : kStages) names.push_back(stage.name);
  names.insert(names.end(), {kPipelineStage, kRecomputeStage, kSynthesizeStage});
  return names;
}

}  // namespace weft::search
