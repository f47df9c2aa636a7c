#include "weft/search/optimize.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "weft/base/units.h"
#include "weft/cost/plan_cost.h"
#include "weft/ops/operators.h"
#include "weft/search/bucket/bucket_exchanges.h"
#include "weft/search/bucket/cut_exchanges.h"
#include "weft/search/codec/choose_codecs.h"
#include "weft/search/codec/code_crossings.h"
#include "weft/search/rewrite/rewrite_communication.h"
#include "weft/search/rewrite/rewrite_step.h"
#include "weft/search/sync/delay_gradients.h"
#include "weft/search/sync/sync_every.h"
#include "weft/search/tile/tile_exchanges.h"

namespace weft::search {
namespace {

using Clock = std::chrono::steady_clock;

// Infinitely many where there is no limit.
double seconds_until(Clock::time_point when) {
  if (when == Clock::time_point::max()) return std::numeric_limits<double>::infinity();
  return std::max(0.0, std::chrono::duration<double>(when - Clock::now()).count());
}

std::string rewrites(std::size_t steps) { return fmt::format("{} rewrite{}", steps, steps == 1 ? "" : "s"); }

// Rules keep what outputs read. A STATE that is renewed and that nothing reads is a source as well, and what is
// learned would lack it.
bool lacks_what_it_renews(const plan::Graph& plan) {
  constexpr std::string_view kNextName = "next ";
  std::set<std::string_view> sources;
  for (std::size_t n = 0; n < plan.node_count(); ++n) {
    const plan::NodeView node = plan.view(plan::NodeId(n));
    if (&node.op() == &ops::state() || &node.op() == &ops::parameter()) sources.insert(node.word(0));
  }
  return std::ranges::any_of(plan.outputs(), [&](const plan::Output& output) {
    const std::string_view name = plan.text(output.name);
    return name.starts_with(kNextName) && !sources.contains(name.substr(kNextName.size()));
  });
}

// Of the time that there is: the plan is to be spread as well.
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
    report.said = "the plan as it was written: it renews a STATE that nothing reads";
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

// Rules judged the plan on one device. Spread over several, the plan as it was written may be better: products
// that were merged no longer slice apart. Then it is taken again.
Result<Choice> distribute_stage(const Problem& problem, Choice choice, StageReport& report) {
  ChooseOptions options = problem.distribution;
  options.until = problem.until;
  const auto spread_of = [&](const plan::Graph& plan) {
    return choose_distribution(plan, *problem.cluster, *problem.machine, options);
  };
  const bool twice = choice.rewritten && problem.least_gain > 0;
  if (twice) options.advise = {};
  // Both are looked at, for as long.
  if (const double left = seconds_until(problem.until); twice && std::isfinite(left))
    options.until -= std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(left / 2));
  Result<DistributionChoice> spread = spread_of(choice.plan);
  options.until = problem.until;
  if (twice) {
    if (!spread.ok()) options.advise = problem.distribution.advise;
    Result<DistributionChoice> written = spread_of(*problem.plan);
    const bool pays =
        spread.ok() && (!written.ok() || spread->chosen.prediction.seconds <
                                             (1 - problem.least_gain) * written->chosen.prediction.seconds);
    if (!pays) {
      choice.plan = problem.plan->clone();
      choice.seconds_at_best = choice.seconds_before;
      choice.trail.clear();
      choice.rewritten = false;
      spread = std::move(written);
      report.said = "the plan as it was written; ";
    }
  }
  if (!spread.ok()) return std::move(spread).error();
  report.changed = true;
  report.said += distribute::print(spread->distribution);
  choice.spread = std::move(*spread);
  return choice;
}

// The plan of the mesh is another now: so is what is said of the distribution it came from.
void compare_families(const Problem& problem, DistributionChoice& spread) {
  const Evaluation ours = spread.chosen.evaluation();
  for (Alternative& family : spread.alternatives) {
    if (family.distribution == spread.distribution)
      family.evaluation = ours;
    else
      family.why_not = why_not_chosen(family, ours, problem.distribution.memory_bytes);
  }
}

void choose_instead(const Problem& problem, Choice& choice, PredictedPlan plan) {
  choice.spread->chosen = std::move(plan);
  compare_families(problem, *choice.spread);
}

Result<Choice> rewrite_communication_stage(const Problem& problem, Choice choice, StageReport& report) {
  WEFT_TRY(found, rewrite_communication(choice.spread->chosen, *problem.machine, problem.cluster->device,
                                        problem.rules, problem.prove,
                                        {.least_gain = problem.least_gain,
                                         .memory_bytes = problem.distribution.memory_bytes,
                                         .seconds = seconds_until(problem.until)}));
  report.said = found.why_not;
  if (!found.plan || lacks_what_it_renews(found.plan->plan.graph)) return choice;
  choose_instead(problem, choice, std::move(*found.plan));
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

bool is_off(const Problem& problem, std::string_view stage) {
  return std::ranges::find(problem.off, stage) != problem.off.end();
}

// The average's share of a step is said beside the step, which does not have it.
Result<Choice> sync_stage(const Problem& problem, Choice choice, StageReport& report) {
  WEFT_TRY(made, sync_every(choice.spread->chosen.plan, problem.sync_every));
  const plan::Mesh& mesh = made.plan.mesh;
  WEFT_TRY(costs, problem.machine->costs(mesh));
  double seconds = 0;
  for (const std::size_t axis : made.axes) {
    program::Exchange exchange;
    exchange.axis = mesh.axes[axis].name;
    seconds += costs.exchange(exchange, axis, made.bytes).seconds();
  }
  const auto steps = static_cast<double>(problem.sync_every);
  report.said = fmt::format(
      "{} gradient{} stay on their ranks; every {} steps {} of parameters are averaged in {}: {} and {} a "
      "step",
      made.gradients, made.gradients == 1 ? "" : "s", problem.sync_every,
      print_bytes(static_cast<double>(made.bytes)), print_seconds(seconds),
      print_bytes(static_cast<double>(made.bytes) / steps), print_seconds(seconds / steps));
  choice.averages = report.said;
  report.changed = true;
  WEFT_TRY(prediction,
           sim::predict(made.plan.graph, mesh, made.plan.layouts, costs,
                        {.overlap = problem.machine->overlap, .workers = problem.machine->workers}));
  choose_instead(problem, choice, {std::move(made.plan), std::move(prediction)});
  return choice;
}

Result<Choice> delay_stage(const Problem& problem, Choice choice, StageReport& report) {
  constexpr std::pair<DelayedSums, std::string_view> kStands[] = {
      {DelayedSums::after_forward, "after its forward pass"},
      {DelayedSums::first, "from its beginning on"},
      {DelayedSums::first_at_low_priority, "from its beginning on, at low priority"}};
  std::optional<PredictedPlan> best;
  for (const auto& [stand, when] : kStands) {
    WEFT_TRY(made, delay_gradients(choice.spread->chosen.plan, stand));
    WEFT_TRY(costs, problem.machine->costs(made.plan.mesh));
    WEFT_TRY(prediction,
             sim::predict(made.plan.graph, made.plan.mesh, made.plan.layouts, costs,
                          {.overlap = problem.machine->overlap, .workers = problem.machine->workers}));
    if (best && prediction.seconds >= best->prediction.seconds) continue;
    report.said = fmt::format(
        "{} gradient{} summed and applied a step later, {}; {} of them are kept on a rank", made.gradients,
        made.gradients == 1 ? " is" : "s are", when, print_bytes(static_cast<double>(made.bytes)));
    best = {std::move(made.plan), std::move(prediction)};
  }
  choice.delayed = report.said;
  report.changed = true;
  choose_instead(problem, choice, std::move(*best));
  return choice;
}

Result<Choice> codecs_stage(const Problem& problem, Choice choice, StageReport& report) {
  ChooseCodecsOptions options{.memory_bytes = problem.distribution.memory_bytes, .until = problem.until};
  // Small gradients may be quicker in buckets than as codes.
  if (!is_off(problem, "bucket"))
    options.finished = [&](const PredictedPlan& plan) -> Result<double> {
      WEFT_TRY(found, bucket_exchanges(plan, *problem.machine, bucket_options(problem)));
      return found.plan ? found.plan->prediction.seconds : plan.prediction.seconds;
    };
  WEFT_TRY(chosen, choose_codecs(choice.spread->chosen, *problem.machine, problem.codecs, options));
  // There are no stages here.
  if (problem.codecs.activations.any())
    chosen.exchanges.push_back({.what = kActivations, .codec = problem.codecs.activations.codecs.front()});
  std::vector<std::string> said;
  for (const CodedExchanges& kind : chosen.exchanges) said.push_back(print(kind));
  report.said = fmt::format("{}", fmt::join(said, "; "));
  report.changed = chosen.plan.has_value();
  choice.coded = std::move(chosen.exchanges);
  if (chosen.plan) choose_instead(problem, choice, std::move(*chosen.plan));
  return choice;
}

// The families that stand beside the choice get what the choice gets: data parallel has had buckets for long. One
// that is then quicker is taken, unless hints, codecs or a given distribution say otherwise.
void bucket_families(const Problem& problem, const BucketOptions& options, DistributionChoice& spread) {
  const FixedPart& fixed = problem.distribution.fixed;
  const bool is_free = !problem.distribution.given && !problem.codecs.any() && problem.sync_every == 1 &&
                       problem.delay == 0 && fixed.slices.empty() && fixed.exceptions.empty();
  for (Alternative& family : spread.alternatives) {
    if (!family.fits || family.distribution == spread.distribution || Clock::now() >= problem.until) continue;
    ChooseOptions given = problem.distribution;
    given.given = family.distribution;
    given.alternatives = false;
    auto whole = choose_distribution(*problem.plan, *problem.cluster, *problem.machine, given);
    if (!whole.ok()) continue;
    auto found = bucket_exchanges(whole->chosen, *problem.machine, options);
    if (!found.ok() || !found->plan) continue;
    family.evaluation = found->plan->evaluation();
    if (!is_free || family.evaluation.seconds >= spread.chosen.prediction.seconds) continue;
    spread.distribution = family.distribution;
    spread.chosen = std::move(*found->plan);
  }
  compare_families(problem, spread);
}

Result<Choice> bucket_stage(const Problem& problem, Choice choice, StageReport& report) {
  const BucketOptions options = bucket_options(problem);
  WEFT_TRY(found, bucket_exchanges(choice.spread->chosen, *problem.machine, options));
  report.said = found.said;
  report.changed = found.plan.has_value();
  if (found.plan) choice.spread->chosen = std::move(*found.plan);
  const auto before = choice.spread->distribution;
  bucket_families(problem, options, *choice.spread);
  if (choice.spread->distribution != before) {
    choice.communication_trail.clear();
    report.changed = true;
    report.said = distribute::print(choice.spread->distribution) + ", which is quicker in buckets";
  }
  return choice;
}

Result<Choice> decompose_stage(const Problem& problem, Choice choice, StageReport& report) {
  WEFT_TRY(found, tile_exchanges(choice.spread->chosen, *problem.machine,
                                 {.least_gain = problem.least_gain,
                                  .memory_bytes = problem.distribution.memory_bytes,
                                  .tiles = problem.tiles}));
  report.said = found.said;
  report.changed = found.plan.has_value();
  if (found.plan) choose_instead(problem, choice, std::move(*found.plan));
  return choice;
}

Result<Choice> credit_stage(const Problem& problem, Choice choice, StageReport& report) {
  WEFT_TRY(found, cut_exchanges(choice.spread->chosen, *problem.machine,
                                {.least_gain = problem.least_gain,
                                 .memory_bytes = problem.distribution.memory_bytes,
                                 .credit = problem.credit}));
  report.said = found.said;
  report.changed = found.plan.has_value();
  if (found.plan || problem.credit > 0) choice.credit = found.said;
  if (found.plan) choose_instead(problem, choice, std::move(*found.plan));
  return choice;
}

// Simulating a step names the algorithms in its programs by what was priced (cost/choose_algorithms.h).
Result<Choice> choose_algorithms_stage(const Problem&, Choice choice, StageReport& report) {
  std::map<std::string, std::size_t> times;
  for (const sim::PricedCollective& collective : choice.spread->chosen.prediction.collectives)
    times[collective.price.algorithm.empty() ? "by formula" : collective.price.algorithm] += collective.times;
  std::vector<std::string> said;
  for (const auto& [algorithm, count] : times) said.push_back(fmt::format("{} {}", count, algorithm));
  report.said = said.empty() ? "nothing is exchanged" : fmt::format("{}", fmt::join(said, ", "));
  return choice;
}

// The prediction is of the programs in the order they run: that is what stages were compared by.
Result<Choice> schedule_stage(const Problem&, Choice choice, StageReport& report) {
  const sim::Prediction& prediction = choice.spread->chosen.prediction;
  report.said =
      fmt::format("{} of {} of communication hidden",
                  print_seconds(std::max(
                      prediction.communication_seconds - prediction.exposed_communication_seconds, 0.0)),
                  print_seconds(prediction.communication_seconds));
  return choice;
}

constexpr Stage kStages[] = {
    {"rewrite", "rules make the plan of one device cheaper", false, rewrite_stage},
    {"distribute", "the plan is spread over the devices of the cluster", true, distribute_stage},
    {"rewrite communication", "rules split, merge and move what the ranks exchange", true,
     rewrite_communication_stage},
    {"sync", "ranks learn by themselves for some steps, and then average what they learned", true,
     sync_stage},
    {"delay", "gradients are summed beside the next step, and applied by it", true, delay_stage},
    {"codecs", "gradients and weights are made small for the wires", true, codecs_stage},
    {"bucket", "gradients that are ready at about the same time are summed by one call", true, bucket_stage},
    {"decompose", "collectives travel in tiles beside the products around them", true, decompose_stage},
    {"credit", "long all-reduces go in parts, so that what is there first is read first", true, credit_stage},
    {"choose algorithms", "each exchange is done by what is quickest on its wires", true,
     choose_algorithms_stage},
    {"schedule", "each rank's tasks are put in order, and the step is simulated", true, schedule_stage},
};

// Left out where the search before it was ended by hand, or the time is up.
bool is_search(const Stage& stage) {
  return stage.run == rewrite_communication_stage || stage.run == decompose_stage ||
         stage.run == credit_stage;
}

}  // namespace

std::span<const Stage> stages() { return kStages; }

std::vector<std::string_view> stage_names() {
  std::vector<std::string_view> names;
  for (const Stage& stage : kStages) names.push_back(stage.name);
  return names;
}

Result<Choice> optimize(const Problem& problem) {
  Choice choice;
  choice.plan = problem.plan->clone();
  choice.until = problem.until;
  choice.seconds_before = choice.seconds_at_best =
      cost::plan_seconds(choice.plan, problem.cluster->device, problem.learns);
  for (const Stage& stage : kStages) {
    StageReport report;
    report.stage = stage.name;
    const bool is_needed = !stage.several || problem.cluster->devices() >= 2;
    if (!is_needed || (stage.run == codecs_stage && !problem.codecs.any()) ||
        (stage.run == sync_stage && problem.sync_every == 1) ||
        (stage.run == delay_stage && problem.delay == 0))
      report.was = StageReport::Was::not_needed;
    else if (is_off(problem, stage.name))
      report.was = StageReport::Was::off;
    else if (choice.spread && choice.spread->outcome.ended == Ended::interrupted && is_search(stage))
      report.was = StageReport::Was::off;
    else if (is_search(stage) && seconds_until(problem.until) <= 0) {
      report.was = StageReport::Was::off;
      report.said = "left out: the time was up";
    }
    if (report.was == StageReport::Was::run) {
      WEFT_TRY(next, stage.run(problem, std::move(choice), report));
      choice = std::move(next);
    }
    report.nodes = (choice.spread ? choice.spread->chosen.plan.graph : choice.plan).node_count();
    report.seconds = choice.spread ? choice.spread->chosen.prediction.seconds : choice.seconds_at_best;
    choice.reports.push_back(std::move(report));
  }
  return choice;
}

}  // namespace weft::search
