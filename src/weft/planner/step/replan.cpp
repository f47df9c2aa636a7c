#include "weft/planner/step/replan.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "weft/base/units.h"
#include "weft/planner/proof/prove_plan.h"
#include "weft/planner/step/plan_for.h"
#include "weft/predict/cost/mesh_links.h"

namespace weft::planner {
namespace {

constexpr double kLeastGainToChange = 0.1;  // share of the step time
constexpr double kMostSearchSeconds = 10;   // ranks wait at most this long, plus the time of the proof
constexpr int kTrainingPerCheck = 9;        // ratio of training to checking time between two checks

Result<sim::Prediction> predict_on(const search::PredictedPlan& plan, const search::Machine& machine) {
  WEFT_TRY(costs, machine.costs(plan.plan.mesh));
  return sim::predict(plan.plan.graph, plan.plan.mesh, plan.plan.layouts, costs,
                      {.overlap = machine.overlap, .workers = machine.workers});
}

std::string print_times(double factor) { return fmt::format("{:.{}f} times", factor, factor < 10 ? 1 : 0); }

// Names the slow rank or the slow link, whichever is worse: "rank 1 takes 3.1 times as long ..".
std::string print_why(const Prepared& prepared, const Slowness& slowness, const run::RankSpeeds& speeds) {
  std::vector<double> compute = speeds.compute;
  const auto slowest = std::ranges::max_element(speeds.compute) - speeds.compute.begin();
  const auto middle = compute.begin() + static_cast<std::ptrdiff_t>((compute.size() - 1) / 2);
  std::ranges::nth_element(compute, middle);
  const double others = *middle > 0 ? speeds.compute[static_cast<std::size_t>(slowest)] / *middle : 1;
  std::size_t axis = 0;
  for (std::size_t a = 1; a < slowness.links.size(); ++a)
    if (slowness.link(a) > slowness.link(axis)) axis = a;
  if (std::max(slowness.compute, others) >= slowness.link(axis)) {
    if (others >= 1.5)
      return fmt::format("rank {} takes {} as long to compute as the others", slowest, print_times(others));
    return fmt::format("ranks take {} as long to compute as planned", print_times(slowness.compute));
  }
  return fmt::format("exchanges along {} take {} as long as planned", prepared.target.axes[axis].name,
                     print_times(slowness.link(axis)));
}

}  // namespace

Result<Slowness> slowness_of(const Prepared& prepared, const search::PredictedPlan& plan,
                             const run::RankSpeeds& speeds, const Slowness& before) {
  const search::Machine machine = machine_of(prepared.settings, prepared.target);
  WEFT_TRY(planned, predict_on(plan, machine));
  WEFT_TRY(links, cost::mesh_links(prepared.target, plan.plan.mesh));
  Slowness slowness = before;
  slowness.links.resize(prepared.target.axes.size(), 1);
  double compute = 0;
  std::vector<double> expected(slowness.links.size()), taken(slowness.links.size());
  for (const sim::RankClass& ranks : planned.classes)
    compute = std::max(compute, run::step_times(*ranks.program, ranks.timeline).compute);
  const sim::RankClass& first = planned.classes.front();
  const std::vector<run::StepTimes> alone = {run::step_times(*first.program, first.timeline)};
  const std::vector<std::vector<run::StepTimes>> alike(static_cast<std::size_t>(plan.plan.mesh.ranks()),
                                                       alone);
  const run::RankSpeeds as_planned = run::speeds_of(*first.program, plan.plan.mesh, alike);
  for (std::size_t axis = 0; axis < links.size(); ++axis) {
    expected[links[axis].cluster_axis] += as_planned.exchange[axis];
    taken[links[axis].cluster_axis] += speeds.exchange[axis];
  }
  if (const double slowest = *std::ranges::max_element(speeds.compute); compute > 0 && slowest > 0)
    slowness.compute = slowest / compute;
  for (std::size_t axis = 0; axis < expected.size(); ++axis)
    if (expected[axis] > 0 && taken[axis] > 0) slowness.links[axis] = taken[axis] / expected[axis];
  return slowness;
}

Result<std::optional<OtherPlan>> find_other_plan(const Knowledge& state, const Observer& context,
                                                 const Prepared& prepared, const PlanToTrain& now,
                                                 const Slowness& slowness) {
  const search::Machine machine =
      slowed(machine_of(prepared.settings, prepared.target), prepared.target, slowness);
  WEFT_TRY(stays, predict_on(now.choice.spread->chosen, machine));
  WEFT_TRY(choice, plan_for_slow(state, prepared, slowness, kMostSearchSeconds, context));
  if (was_interrupted(choice)) return std::optional<OtherPlan>();
  const double seconds = choice.spread->chosen.prediction.seconds;
  if (seconds > (1 - kLeastGainToChange) * stays.seconds) return std::optional<OtherPlan>();
  WEFT_TRY(plan, to_train(state, prepared, std::move(choice)));
  if (plan.kept == now.kept) return std::optional<OtherPlan>();
  WEFT_TRY(proof, require_proof(state, prepared, prepared.plan.graph, plan.choice));
  return std::optional<OtherPlan>({std::move(plan), seconds, stays.seconds});
}

Result<std::optional<OtherPlan>> Replanning::look_for(const PlanToTrain& now, const run::RankSpeeds& speeds) {
  WEFT_TRY(slowness, slowness_of(prepared_, now.choice.spread->chosen, speeds, looked_at_));
  if (!differs(slowness, looked_at_)) return std::optional<OtherPlan>();
  looked_at_ = slowness;
  return find_other_plan(state_, context_, prepared_, now, looked_at_);
}

std::optional<std::string> Replanning::look(std::int64_t step, const PlanToTrain& now,
                                            const run::RankSpeeds& speeds) {
  const auto begin = Clock::now();
  if (begin < next_) return std::nullopt;
  auto other = look_for(now, speeds);
  next_ = Clock::now() + kTrainingPerCheck * (Clock::now() - begin);
  const std::string why = print_why(prepared_, looked_at_, speeds);
  if (!other.ok()) {
    state_.warnings.add_now(fmt::format("{}, and no other plan was found", why), other.error(),
                            context_.on_warning);
    return std::nullopt;
  }
  if (!*other) return std::nullopt;
  state_.warnings.add_now(
      fmt::format("switched to another plan from step {} on ({}), {} per step instead of {}",
                  print_exact(step + 1), distribute::print((*other)->plan.choice.spread->distribution),
                  print_seconds((*other)->seconds), print_seconds((*other)->seconds_now)),
      environment_error(why), context_.on_warning);
  return std::move((*other)->plan.kept);
}

}  // namespace weft::planner
