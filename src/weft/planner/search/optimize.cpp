#include "weft/planner/search/optimize.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <span>

#include <fmt/format.h>

#include "weft/base/units.h"
#include "weft/parallel/distribute/index_roles.h"
#include "weft/planner/search/distribution/simplicity.h"
#include "weft/planner/search/stages.h"
#include "weft/predict/cost/plan_cost.h"

namespace weft::search {
namespace {

auto distributing() { return std::ranges::find(stages(), kDistributeStage, &Stage::name); }
std::span<const Stage> after_distributing() { return {distributing() + 1, stages().end()}; }

double seconds_of(const Choice& choice) {
  return choice.spread ? choice.spread->chosen.prediction.seconds : choice.seconds_at_best;
}

bool is_interrupted(const Choice& choice) {
  return choice.spread && choice.spread->outcome.ended == Ended::interrupted;
}

void report_on(Choice& choice, StageReport report) {
  report.nodes = (choice.spread ? choice.spread->chosen.plan.graph : choice.plan).node_count();
  report.seconds = seconds_of(choice);
  if (choice.spread) report.peak_bytes = choice.spread->chosen.evaluation().peak_bytes;
  choice.reports.push_back(std::move(report));
}

Result<Choice> run_stage(const Problem& problem, const Stage& stage, Choice choice) {
  StageReport report;
  report.stage = stage.name;
  const bool several = problem.cluster->devices() >= 2;
  if ((stage.several && !several) || (stage.is_needed != nullptr && !stage.is_needed(problem))) {
    report.was = StageReport::Was::not_needed;
  } else if (is_off(problem, stage.name) || (is_interrupted(choice) && stage.searches)) {
    report.was = StageReport::Was::off;
  } else if (stage.searches && seconds_until(problem.until) <= 0) {
    report.was = StageReport::Was::off;
    report.said = "not used: out of time";
  } else {
    const auto began = std::chrono::steady_clock::now();
    WEFT_TRY(next, stage.run(problem, std::move(choice), report));
    choice = std::move(next);
    report.took = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  }
  report_on(choice, std::move(report));
  return choice;
}

Result<Choice> without_stage(const Problem& problem, const Stage& stage, Choice choice) {
  StageReport report{.stage = stage.name, .was = StageReport::Was::off};
  report.said = "not used: later planner stages gain more without it";
  if (stage.name == kCodecsStage) {
    const distribute::DistributedPlan& plan = choice.spread->chosen.plan;
    WEFT_TRY(none, place_codecs(plan, problem.codecs, CodecPicks(plan.graph.node_count())));
    choice.coded = std::move(none.exchanges);
  }
  report_on(choice, std::move(report));
  return choice;
}

// Kinds of exchange, then exchanges: a plan with fewer is easier to understand, and depends less on
// links that may be busy.
std::pair<std::size_t, std::size_t> exchanges_of(const Choice& choice) {
  std::set<std::pair<std::string, program::Exchange::Kind>> kinds;
  std::size_t times = 0;
  for (const sim::EstimatedCollective& one : choice.spread->chosen.prediction.collectives) {
    kinds.emplace(one.axis, one.kind);
    times += one.times;
  }
  return {kinds.size(), times};
}

// Lower bound: planner stages only reduce exposed communication.
double least_seconds_of(const Evaluation& step) { return step.seconds - step.exposed_communication_seconds; }

// Runs all in order. Skips at most one that changed the plan, if the step is faster without it.
Result<Choice> run_stages(const Problem& problem, std::span<const Stage> stages, Choice choice,
                          bool may_leave_out) {
  for (std::size_t s = 0; s < stages.size(); ++s) {
    std::optional<Choice> before;
    if (may_leave_out && stages[s].is_optional != nullptr && stages[s].is_optional(problem))
      before = choice.clone();
    WEFT_TRY(next, run_stage(problem, stages[s], std::move(choice)));
    choice = std::move(next);
    if (!before || !choice.reports.back().changed) continue;
    const std::span<const Stage> rest = stages.subspan(s + 1);
    WEFT_TRY(with, run_stages(problem, rest, std::move(choice), true));
    const bool may_gain = least_seconds_of(before->spread->chosen.evaluation()) < seconds_of(with);
    if (!may_gain || seconds_until(problem.until) <= 0) return with;
    WEFT_TRY(skipped, without_stage(problem, stages[s], *std::move(before)));
    Result<Choice> without = run_stages(problem, rest, std::move(skipped), false);
    return without.ok() && seconds_of(*without) < seconds_of(with) ? std::move(without) : std::move(with);
  }
  return choice;
}

// Runs further distributions through all planner stages to compete with the first. EXPLAIN shows
// the families among them.
class Contest {
 public:
  Contest(const Problem& problem, const Choice& rewritten, const ChosenDistribution& searched,
          Result<Choice> first)
      : problem_(problem),
        rewritten_(rewritten),
        searched_(searched),
        best_(std::move(first)),
        watch_(problem.distribution.watching) {
    finished_.push_back(searched_.distribution);
  }

  Result<Choice> run() {
    const auto began = std::chrono::steady_clock::now();
    watch_.expect(searched_.lower_bound_seconds);
    for (Alternative& family : searched_.alternatives) enter(family);
    constexpr std::size_t kMostContenders = 3;  // outside the families
    std::size_t entered = 0;
    if (!problem_.distribution.given)
      for (const Found& found : searched_.outcome.best)
        if (entered < kMostContenders && found.score.fits && !is_finished(found.distribution) &&
            may_win(found.evaluation)) {
          ++entered;
          if (auto made = finish(found.distribution); made.ok()) take(std::move(*made));
        }
    if (!best_.ok()) return std::move(best_).error();
    take_simplest();
    DistributionChoice& chosen = *best_->spread;
    if (finished_.size() > 1) {
      StageReport report{.stage = "other distributions"};
      report.tried = static_cast<std::int64_t>(finished_.size()) - 1;
      report.changed = chosen.distribution != searched_.distribution;
      report.said = !best_->simpler.empty() ? distribute::print(chosen.distribution) + " is simpler"
                    : report.changed ? distribute::print(chosen.distribution) + " is faster after all stages"
                                     : "none is faster after all stages";
      report.took = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
      report_on(*best_, std::move(report));
    }
    searched_.distribution = chosen.distribution;
    searched_.fits = chosen.fits;
    static_cast<ChosenDistribution&>(chosen) = std::move(searched_);
    compare(chosen);
    return std::move(best_);
  }

 private:
  bool is_over() {
    if (best_.ok()) watch_.see(searched_.outcome.estimates, seconds_of(*best_));
    return watch_.over() || seconds_until(problem_.until) <= 0;
  }
  bool is_finished(const distribute::Distribution& one) const {
    return std::ranges::find(finished_, one) != finished_.end();
  }
  bool may_win(const Evaluation& estimate) {
    return !is_over() && (!best_.ok() || may_take_less(estimate, problem_.codecs, seconds_of(*best_)));
  }

  // As if it had been given by the user.
  Result<Choice> finish(const distribute::Distribution& one) {
    finished_.push_back(one);
    Problem given = problem_;
    given.distribution.given = one;
    given.distribution.alternatives = false;
    given.distribution.advise = {};
    WEFT_TRY(spread, run_stage(given, *distributing(), rewritten_.clone()));
    return run_stages(given, after_distributing(), std::move(spread), true);
  }

  // Families ignore hints, so they compete only without them.
  void enter(Alternative& family) {
    const FixedPart& fixed = problem_.distribution.fixed;
    const bool is_free = !problem_.distribution.given && fixed.empty();
    const bool competes = is_free && family.fits && may_win(family.evaluation);
    const bool is_small = problem_.plan->node_count() <= kMostNodesCompared;
    if (is_finished(family.distribution) || is_over()) return;
    // Estimates may rank families wrongly. In small plans all families run through all planner
    // stages, whether they are displayed or not, so that every command finds the same plan.
    if (!competes && !(is_small && (is_free || problem_.distribution.alternatives))) return;
    auto made = finish(family.distribution);
    if (!made.ok()) return;
    family.evaluation = made->spread->chosen.evaluation();
    family.fits = made->spread->fits;
    family.estimated = false;
    if (is_free) take(std::move(*made));
  }

  void take(Choice made) {
    if (!made.spread->fits) return;
    if (!best_.ok()) {
      best_ = std::move(made);
      return;
    }
    if (seconds_of(made) < seconds_of(*best_)) std::swap(made, *best_);
    others_.push_back(std::move(made));
  }

  // A step that is faster by less than predictions can tell is not worth a plan that is harder to set up, nor more
  // exchanges.
  void take_simplest() {
    const double fastest = seconds_of(*best_);
    const distribute::IndexRoles roles = distribute::index_roles(*problem_.plan);
    const auto rank = [&](const Choice& one) {
      return std::pair(complexity_of(one.spread->distribution, roles), exchanges_of(one));
    };
    Choice* simplest = nullptr;
    for (Choice& other : others_)
      if (seconds_of(other) <= (1 + problem_.simpler_within) * fastest &&
          rank(other) < rank(simplest != nullptr ? *simplest : *best_))
        simplest = &other;
    if (simplest == nullptr) return;
    std::string left =
        fmt::format("{} takes {}, {:.1f} % less: within {:.1f} %, the simpler plan is preferred",
                    distribute::print(best_->spread->distribution), print_seconds(fastest),
                    100 * (1 - fastest / seconds_of(*simplest)), 100 * problem_.simpler_within);
    best_ = std::move(*simplest);
    best_->simpler = std::move(left);
  }

  void compare(DistributionChoice& chosen) const {
    const Evaluation ours = chosen.chosen.evaluation();
    for (Alternative& family : chosen.alternatives) {
      const bool is_chosen = family.distribution == chosen.distribution;
      if (is_chosen) family.evaluation = ours, family.estimated = false;
      family.why_not = is_chosen ? "this is the chosen plan"
                                 : why_not_chosen(family, ours, problem_.distribution.memory_bytes);
    }
  }

  const Problem& problem_;
  const Choice& rewritten_;
  ChosenDistribution searched_;
  Result<Choice> best_;
  std::vector<Choice> others_;  // finished and slower
  std::vector<distribute::Distribution> finished_;
  SearchWatch watch_;
};

}  // namespace

Choice Choice::clone() const {
  Choice copy;
  copy.plan = plan.clone();
  copy.seconds_at_best = seconds_at_best;
  copy.rewritten = rewritten;
  copy.trail = trail;
  copy.seconds_before = seconds_before;
  copy.stopped = stopped;
  copy.communication_trail = communication_trail;
  copy.reports = reports;
  copy.coded = coded;
  copy.codecs = codecs;
  copy.slices = slices;
  copy.averages = averages;
  copy.credit = credit;
  copy.delayed = delayed;
  copy.simpler = simpler;
  copy.until = until;
  if (!spread) return copy;
  copy.spread.emplace();
  static_cast<ChosenDistribution&>(*copy.spread) = *spread;
  const distribute::DistributedPlan& from = spread->chosen.plan;
  distribute::DistributedPlan& to = copy.spread->chosen.plan;
  to.graph = from.graph.clone();
  to.mesh = from.mesh;
  to.layouts = from.layouts;
  to.opened = from.opened;
  to.origin = from.origin;
  to.own = from.own;
  to.time = from.time;
  copy.spread->chosen.prediction = spread->chosen.prediction;
  return copy;
}

bool may_take_less(const Evaluation& estimate, const Codecs& codecs, double seconds) {
  constexpr double kMostHidden = 0.7;
  const double saved = (codecs.any() ? 1 : kMostHidden) * estimate.exposed_communication_seconds;
  return estimate.seconds - saved < seconds;
}

Result<Choice> optimize(const Problem& problem) {
  Choice choice;
  choice.plan = problem.plan->clone();
  choice.until = problem.until;
  choice.seconds_before = choice.seconds_at_best =
      cost::plan_seconds(choice.plan, problem.cluster->device, problem.learns);
  if (problem.cluster->devices() < 2) return run_stages(problem, stages(), std::move(choice), false);
  WEFT_TRY(rewritten, run_stages(problem, {stages().begin(), distributing()}, std::move(choice), false));
  WEFT_TRY(spread, run_stage(problem, *distributing(), rewritten.clone()));
  const ChosenDistribution searched = *spread.spread;
  const bool is_interrupted_here = is_interrupted(spread);
  Result<Choice> first = run_stages(problem, after_distributing(), std::move(spread), true);
  if (is_interrupted_here) return first;
  return Contest(problem, rewritten, searched, std::move(first)).run();
}

}  // namespace weft::search
