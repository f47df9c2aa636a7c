#include "weft/planner/step/plan_for.h"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "weft/base/check.h"
#include "weft/base/machine.h"
#include "weft/parallel/distribute/check_rings.h"
#include "weft/plan/cluster/digest.h"
#include "weft/plan/graph/hash.h"
#include "weft/planner/exchange/exchange_costs.h"
#include "weft/planner/search/distribution/known_plans.h"
#include "weft/planner/search/rewrite/rewrite_plan.h"
#include "weft/planner/statement/requested_pipeline.h"
#include "weft/planner/statement/rule_source.h"
#include "weft/planner/step/what_fits.h"
#include "weft/planner/step/written_plan.h"
#include "weft/predict/cost/mesh_links.h"
#include "weft/predict/cost/roofline.h"
#include "weft/predict/cost/statistics.h"
#include "weft/predict/cost/step_costs.h"
#include "weft/predict/cost/unit_seconds.h"
#include "weft/rules/rule/library.h"
#include "weft/runtime/run/local_ranks.h"

namespace weft::planner {
namespace {

using Clock = std::chrono::steady_clock;
constexpr double kLongestSearch = 1e9;  // seconds: within the range of a clock

}  // namespace

search::Watching watching_by(const Observer& context, const Prepared& prepared) {
  search::Watching watching;
  watching.interrupted = context.interrupted;
  if (context.on_search)
    watching.on_progress = [&context, &prepared](const search::SearchProgress& now) {
      context.on_search(prepared.run->model.text, now, prepared.seconds_of_planning());
    };
  return watching;
}

namespace {

Error no_offload(const Prepared& prepared) {
  return user_error("optimizer states are offloaded only on clusters, in plans with stages or micro-batches",
                    "on this machine memory_limit spills to a file", prepared.run->span);
}

// Losses without gradients are tiled when the statement is prepared, if requested and supported by
// a kernel (prepare.cpp). Plans that do not train need no gradients.
std::span<const rule::Rule> rules_of_plans(bool learns) {
  static const auto without = [](std::initializer_list<std::string_view> files) {
    std::vector<rule::Rule> rules = rule::shipped_rules();
    std::erase_if(rules, [&](const rule::Rule& rule) {
      return std::ranges::any_of(
          files, [&](std::string_view file) { return std::string_view(rule.file).ends_with(file); });
    });
    return rules;
  };
  static const std::vector<rule::Rule> kLearning = without({"loss_alone.rules"}),
                                       kAnswering = without({"loss_alone.rules", "loss.rules"});
  return learns ? kLearning : kAnswering;
}

// `distribution`: from the user or another rank; empty: search for one.
Result<search::Choice> optimize_for(const Knowledge& state, const Settings& settings,
                                    const Prepared& prepared, const cluster::Cluster& target,
                                    const plan::Graph& graph, const std::string& distribution, bool compare,
                                    const Observer* context = nullptr, Advice advice = Advice::given,
                                    const Slowness& slowness = {}) {
  const cluster::Cluster one = alone(target);
  if (cost::is_local(target))
    state.warnings.add("earlier measurements are not used", cost::Statistics::check({}));
  const search::Machine machine = slowed(machine_of(settings, target), target, slowness),
                        machine_alone = machine_of(settings, one);
  search::Problem problem;
  problem.plan = &graph;
  problem.learns = graph.has(plan::Phase::update);
  problem.cluster = &target;
  problem.machine = &machine;
  problem.alone = &machine_alone;
  problem.rules = rules_of_plans(problem.learns);
  problem.prove = [&](const rule::Rule& rule) { return prove_once(state, rule); };
  if (settings.rules == true) {
    problem.least_gain = 0;
    problem.rewrites = search::Budget().rewrites;
  }
  problem.off = settings.optimizer_off;
  problem.simpler_within = simpler_within(settings, target);
  problem.codecs = settings.codecs;
  if (problem.learns) {
    problem.distribution.asked = asked_of(settings);
  }
  problem.bucket_bytes = settings.bucket_bytes.value_or(0);
  if (!settings.bucket_bytes) problem.off.emplace_back("bucket");
  problem.tiles = settings.tiles.value_or(0);
  if (!settings.tiles) problem.off.emplace_back(search::kTileStage);
  if (!settings.credit) problem.off.emplace_back(search::kPartitionStage);
  if (settings.rules == false) problem.off.insert(problem.off.end(), {"rewrite", "rewrite communication"});
  search::ChooseOptions& options = problem.distribution;
  options.memory_bytes = memory_per_rank(settings, target);
  options.fixed = prepared.fixed;
  options.budget.estimates = settings.search_limit;
  if (settings.seconds > 0) {
    options.budget.seconds = settings.seconds;
    problem.until = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(
                                       std::min(settings.seconds, kLongestSearch)));
  }
  if (context != nullptr) options.watching = watching_by(*context, prepared);
  options.alternatives = compare;
  options.devices_per_rank = machine.workers;
  options.known = state.known_plans.get();
  if (advice == Advice::given)
    options.advise = [&](const search::TooLarge& large) {
      return what_fits(state, prepared, large,
                       [&](const Settings& other, const cluster::Cluster& on, const plan::Graph& plan) {
                         Settings left = other;
                         if (left.seconds > 0) {
                           left.seconds = std::chrono::duration<double>(problem.until - Clock::now()).count();
                           if (left.seconds <= 0) return false;
                         }
                         return optimize_for(state, left, prepared, on, plan, {}, /*compare=*/false, context,
                                             Advice::not_asked)
                             .ok();
                       });
    };
  if (!distribution.empty()) {
    WEFT_TRY(given, distribute::read_distribution(distribution));
    if (given.offload) return no_offload(prepared);
    WEFT_TRY_STATUS(distribute::check_rings(graph, given));
    options.given = std::move(given);
  }
  WEFT_TRY(choice, search::optimize(problem));
  if (choice.spread && problem.learns) {
    WEFT_TRY(again, recompute_of(settings));
    choice.spread->distribution.recompute = std::move(again);
  }
  return choice;
}

}  // namespace

Result<search::Choice> plan_for(const Knowledge& state, const Prepared& prepared, bool compare,
                                const Observer* context, Advice advice) {
  auto choice = optimize_for(state, prepared.settings, prepared, prepared.target, prepared.plan.graph,
                             prepared.settings.distribution, compare, context, advice);
  if (choice.ok()) return choice;
  Error error = std::move(choice).error();
  if (!error.span.known()) error.span = prepared.run->span;
  return error;
}

Result<search::Choice> plan_given(const Knowledge& state, const Prepared& prepared,
                                  const distribute::Distribution& distribution, const Observer* context) {
  return optimize_for(state, prepared.settings, prepared, prepared.target, prepared.plan.graph,
                      distribute::print(distribution), /*compare=*/false, context, Advice::not_asked);
}

Result<search::Choice> plan_for_slow(const Knowledge& state, const Prepared& prepared,
                                     const Slowness& slowness, double seconds, const Observer& context) {
  Settings settings = prepared.settings;
  settings.seconds = settings.seconds > 0 ? std::min(settings.seconds, seconds) : seconds;
  return optimize_for(state, settings, prepared, prepared.target, prepared.plan.graph, settings.distribution,
                      /*compare=*/false, &context, Advice::not_asked, slowness);
}

bool was_interrupted(const search::Choice& choice) {
  return choice.spread && choice.spread->outcome.ended == search::Ended::interrupted;
}

Result<search::Choice> plan_alone(const Knowledge& state, const Prepared& prepared,
                                  const plan::Graph& graph) {
  return optimize_for(state, prepared.settings, prepared, alone(prepared.target), graph, {},
                      /*compare=*/false);
}

Result<search::Choice> adopt_plan(const Knowledge& state, const Prepared& prepared,
                                  const std::string& distribution, const std::string& text, bool compare) {
  Settings plain = prepared.settings;
  plain.rules = false;
  plain.codecs = {};
  plain.sync_every = 1;
  plain.delay = 0;
  for (const std::string_view stage :
       {std::string_view("bucket"), search::kTileStage, search::kPartitionStage})
    plain.optimizer_off.emplace_back(stage);
  WEFT_TRY(choice,
           optimize_for(state, plain, prepared, prepared.target, prepared.plan.graph, distribution, compare));
  WEFT_TRY(mesh, plan::read_mesh(read_head(text).mesh));
  search::PredictedPlan& chosen = choice.spread->chosen;
  WEFT_TRY(plan, read_written(text, mesh, prepared.plan.graph));
  chosen.plan = std::move(plan);
  const search::Machine machine = machine_of(prepared.settings, prepared.target);
  WEFT_TRY(costs, machine.costs(mesh));
  WEFT_TRY(prediction, sim::predict(chosen.plan.graph, mesh, chosen.plan.layouts, costs,
                                    {.overlap = machine.overlap, .workers = machine.workers}));
  chosen.prediction = std::move(prediction);
  return choice;
}

Result<search::Choice> adopt_plan_alone(const Knowledge& state, const Prepared& prepared,
                                        const std::string& text) {
  Settings plain = prepared.settings;
  plain.rules = false;
  WEFT_TRY(choice, optimize_for(state, plain, prepared, alone(prepared.target), prepared.plan.graph, {},
                                /*compare=*/false));
  WEFT_TRY(written, read_written(text, plan::Mesh{{{"rank", 1}}}, prepared.plan.graph));
  choice.rewritten = plan::structural_hash(written.graph) != plan::structural_hash(prepared.plan.graph);
  choice.plan = std::move(written.graph);
  return choice;
}

Result<search::Choice> plan_for_ranks(const Knowledge& state, const Prepared& prepared, bool compare,
                                      const Observer* context) {
  // All ranks search at the same time, so that none waits for longer than its own search takes. A
  // rank whose search failed takes part too.
  Result<search::Choice> found = plan_for(state, prepared, compare, context);
  WEFT_TRY(job, run::launched_job());
  if (job == nullptr) return found;
  std::string mine;
  if (found.ok())
    mine = distribute::print(found->spread->distribution) + "\n" +
           print_written(found->spread->chosen.plan, prepared);
  WEFT_TRY(first, run::from_first_rank(mine));
  if (!found.ok() || first == mine) return found;
  if (first.empty()) return environment_error("rank 0 found no plan", "see the error of rank 0");
  const std::size_t line = first.find('\n');
  return adopt_plan(state, prepared, first.substr(0, line), first.substr(line + 1), compare);
}

}  // namespace weft::planner
