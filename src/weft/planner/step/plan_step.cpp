#include "weft/planner/step/plan_step.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "weft/base/units.h"
#include "weft/parallel/distribute/index_roles.h"
#include "weft/planner/search/pipeline/unequal_replicas.h"
#include "weft/planner/step/plan_for.h"
#include "weft/planner/step/plan_pipeline.h"
#include "weft/predict/cost/mesh_links.h"

namespace weft::planner {
namespace {

using distribute::Distribution;

bool is_off(const Prepared& prepared) {
  return std::ranges::find(prepared.settings.optimizer_off, search::kPipelineStage) !=
         prepared.settings.optimizer_off.end();
}

// Plans with stages are searched for clusters. Ranks of this machine run only given stages.
bool is_searched(const Prepared& prepared) {
  return prepared.trains() && prepared.ranks > 1 && !prepared.target.runs_here() &&
         prepared.settings.distribution.empty() && !is_off(prepared) &&
         search::check_in_time(asked_of(prepared.settings)).ok();
}

// Other software than Weft's own on a cluster: only the estimate of stages knows what it adds.
bool is_priced_by_stages(const Prepared& prepared) {
  return prepared.trains() && prepared.ranks > 1 && !prepared.target.runs_here() &&
         !prepared.target.stack.is_weft();
}

bool needs_stages(const Prepared& prepared) {
  return prepared.fixed.degree(search::Parallelism::pipeline, 1) > 1;
}
// These are searched only in plans without stages.
bool excludes_stages(const Prepared& prepared) {
  return prepared.fixed.degree(search::Parallelism::context, 1) > 1 ||
         prepared.fixed.degree(search::Parallelism::expert, 1) > 1 ||
         prepared.fixed.degree(search::Parallelism::zero, 0) == 3;
}

// `searches`: whether plans with stages are searched.
Status check_degrees(const Prepared& prepared, bool searches) {
  const std::vector<search::FixedDegree>& degrees = prepared.fixed.degrees;
  if (degrees.empty() || prepared.ranks == 1) return {};
  std::int64_t ranks = 1;
  for (const search::FixedDegree& one : degrees)  // experts are on ranks that slice the batch
    if (one.kind != search::Parallelism::zero && one.kind != search::Parallelism::expert)
      if (__builtin_mul_overflow(ranks, one.degree, &ranks)) ranks = prepared.ranks + 1;
  if (prepared.ranks % ranks != 0)
    return user_error(fmt::format("HINT {} needs a multiple of {} ranks, {} has {}", print(degrees), ranks,
                                  prepared.target.name, prepared.ranks),
                      "other degrees, or another cluster");
  if (!prepared.settings.distribution.empty()) {
    WEFT_TRY(given, distribute::read_distribution(prepared.settings.distribution));
    if (given.axes.empty() ||
        keeps(prepared.fixed, prepared.target, given, distribute::index_roles(prepared.plan.graph)))
      return {};
    return user_error(fmt::format("the distribution does not keep HINT {}: {}", print(degrees), print(given)),
                      "remove one of them");
  }
  if (!needs_stages(prepared)) return {};
  if (!searches)
    return user_error(
        fmt::format("HINT {}: stages are searched for TRAIN on a cluster, without micro_batches",
                    print(degrees)),
        "give them in full: distribution = 'stage=2: stage; data=2: slice b; micro=4'");
  if (excludes_stages(prepared))
    return user_error(fmt::format("HINT {}: no search combines PP with CP, EP or ZERO 3", print(degrees)),
                      "leave out PP, or give a distribution in full: SET distribution = '..'");
  return {};
}

// If every family without stages needs this many times the memory, no variant will fit.
constexpr double kFarTooLarge = 1.5;

// Plans without stages are simpler, so stages must be faster by more than this. The margin is too
// small to notice: allowing another kind of plan must not make the result slower.
constexpr double kWorthStages = 0.992;
double worth_stages(const Prepared& prepared) {
  return std::min(kWorthStages, 1 - simpler_within(prepared.settings, prepared.target));
}

class StagePlanner {
 public:
  StagePlanner(const Knowledge& state, const Observer* context, const Prepared& prepared, const Batch& batch,
               std::int64_t micro_batches, bool compare)
      : state_(state), context_(context), prepared_(prepared), compare_(compare) {
    step_.batch = batch;
    step_.problem = std::make_unique<StatementPipeline>(state, context, prepared, batch, micro_batches);
  }

  Result<PlannedStep> given(Distribution asked) {
    step_.given = !asked.mesh.axes.empty();
    WEFT_TRY(distribution, complete_pipeline(state_, context_, prepared_, std::move(asked)));
    search::PipelineProblem problem = this->problem();
    if (prepared_.target.runs_here() || prepared_.settings.codecs.any()) {
      WEFT_TRY(made, plan_pipeline(state_, context_, prepared_, distribution));
      problem.codecs = made.codecs;
      step_.plan = std::move(made);
    }
    WEFT_TRY(priced, search::estimate_given(problem, step_.problem->as_priced(distribution)));
    priced.distribution = std::move(distribution);
    if (compare_ && prepared_.ranks > 1) WEFT_TRY_STATUS(look_at_families(search::estimate_families));
    return take(std::move(priced));
  }

  // A plan without stages, chosen or given, with other software than Weft's own.
  Result<PlannedStep> once(search::Choice whole) {
    return faster_of(std::move(whole), user_error("not searched"));
  }

  // The faster of the best plans with and without stages. If no family without stages fits, and the
  // best plan with stages is much faster than all of them, the search without stages is skipped.
  // The search with stages is skipped if there is little to gain. Large plans are searched with
  // stages first, and without stages only if estimates suggest that this could be faster.
  Result<PlannedStep> searched() {
    constexpr double kFarQuicker = 0.5;
    // For a large plan, one estimate without stages takes as long as the whole search with stages, which covers
    // Megatron's families. So the search with stages runs first. If it uses up the time, its plan is the result.
    std::optional<Result<search::ChosenPipeline>> found;
    if (is_large() || needs_stages(prepared_)) {
      found = in_time_below(std::numeric_limits<double>::infinity());
      if (found->ok() && out_of_time()) return take_with_replicas(std::move(**found));
    }
    WEFT_TRY_STATUS(look_at_families(is_large() ? search::estimate_best : search::estimate_families));
    if (needs_stages(prepared_)) {
      if (!found->ok()) return found->error();
      return take_with_replicas(std::move(**found));
    }
    double smallest = std::numeric_limits<double>::infinity(), quickest = smallest;
    bool fits = false;
    for (const search::Alternative& family : step_.without_stages) {
      smallest = std::min(smallest, family.evaluation.peak_bytes);
      quickest = std::min(quickest, family.evaluation.seconds);
      fits = fits || family.fits;
    }
    if (!fits || is_large()) {
      if (!found) found = in_time_below(std::numeric_limits<double>::infinity());
      if (found->ok() && ((!fits && (**found).priced.seconds <= kFarQuicker * quickest) ||
                          (fits && !may_be_beaten((**found).priced.seconds))))
        return take_with_replicas(std::move(**found));
    }
    // A variant of these may still fit, so they are searched unless they need far too much memory.
    if (fits || smallest <= kFarTooLarge * problem().memory_bytes) {
      Result<search::Choice> whole =
          plan_for(state_, prepared_, compare_, context_, fits ? Advice::given : Advice::not_asked);
      if (whole.ok() && !is_weft()) return faster_of(std::move(*whole), std::move(found));
      if (whole.ok()) {
        const search::Evaluation step = whole->spread->chosen.evaluation();
        if (!found && !was_interrupted(*whole) && may_gain(*whole, step))
          found = in_time_below(worth_ * step.seconds);
        // If devices differ, its replicas may get unequal shares of the batch.
        const double in_time = found && found->ok() ? (**found).priced.seconds : step.seconds;
        WEFT_TRY(unequal, search::with_unequal_replicas(problem(), whole->spread->distribution,
                                                        worth_ * std::min(in_time, step.seconds)));
        if (unequal) found = *std::move(unequal);
        if (!found || !found->ok() || (**found).priced.seconds >= worth_ * step.seconds)
          return without_stages(std::move(*whole), found);
        step_.reports = whole->reports;
        step_.without_stages = whole->spread->alternatives;
        step_.without_stages.insert(step_.without_stages.begin(), {"without stages",
                                                                   whole->spread->distribution,
                                                                   step,
                                                                   /*fits=*/true,
                                                                   {},
                                                                   /*estimated=*/false});
        are_as_run_ = true;
        return take_with_replicas(std::move(**found));
      }
      // This error says more than that nothing fits with stages either.
      if (fits && !found) found = in_time_below(std::numeric_limits<double>::infinity());
      if (fits && !found->ok()) return std::move(whole).error();
    }
    if (!found) found = in_time_below(std::numeric_limits<double>::infinity());
    if (found->ok()) return take_with_replicas(std::move(**found));
    // Nothing fits: plan again to report the error with advice.
    WEFT_TRY(whole, plan_for(state_, prepared_, compare_, context_));
    return PlannedStep{std::move(whole), std::nullopt};
  }

 private:
  const search::PipelineProblem& problem() const { return step_.problem->problem(); }
  bool out_of_time() const { return std::chrono::steady_clock::now() >= problem().until; }
  bool is_large() const { return prepared_.plan.graph.node_count() > search::kMostNodesCompared; }
  // Whether a plan without stages may be faster after the later planner stages.
  bool may_be_beaten(double seconds) const {
    return std::ranges::any_of(step_.without_stages, [&](const search::Alternative& other) {
      return other.fits && search::may_take_less(other.evaluation, prepared_.settings.codecs, seconds);
    });
  }
  // Stages avoid exposed communication, and work that all ranks along an axis duplicate.
  bool may_gain(const search::Choice& whole, const search::Evaluation& step) const {
    return step.exposed_communication_seconds >= (1 - worth_) * step.seconds ||
           std::ranges::any_of(whole.spread->distribution.axes,
                               [](const distribute::AxisUse& use) { return use.slice.empty(); });
  }
  bool is_weft() const { return prepared_.target.stack.is_weft(); }

  // With other software, both kinds of plan are estimated by their stages: only that estimate knows what the host and
  // overlap cost and what memory the software takes. What Weft's own runtime could do besides is left out: no launcher
  // tiles or buckets as this plan says.
  Result<PlannedStep> faster_of(search::Choice whole, std::optional<Result<search::ChosenPipeline>> staged) {
    WEFT_TRY(once, search::estimate_given(problem(), whole.spread->distribution));
    const double enough =
        once.fits ? kWorthStages * once.priced.seconds : std::numeric_limits<double>::infinity();
    if (!staged && !was_interrupted(whole)) staged = in_time_below(enough);
    step_.reports = whole.reports;
    step_.without_stages = whole.spread->alternatives;
    if (staged && staged->ok() && (**staged).priced.seconds < enough)
      return take_with_replicas(std::move(**staged));
    return take_with_replicas(std::move(once));
  }

  // With profitable codecs: they may make a plan the fastest that is not the fastest without them.
  Result<search::ChosenPipeline> in_time_below(double seconds) {
    search::PipelineProblem problem = this->problem();
    if (!prepared_.settings.codecs.any()) {
      problem.beat_seconds = seconds;
      return search::choose_pipeline(problem);
    }
    WEFT_TRY(found, search::choose_pipeline(problem));
    WEFT_TRY(made, plan_pipeline(state_, context_, prepared_, found.distribution));
    problem.codecs = made.codecs;
    WEFT_TRY(coded, search::estimate_given(problem, step_.problem->as_priced(found.distribution)));
    static_cast<search::PipelinePlan&>(found) = {found.distribution, std::move(coded.priced), coded.fits};
    step_.plan = std::move(made);
    return found;
  }

  Status look_at_families(decltype(&search::estimate_families) estimate) {
    search::ChooseOptions options;
    options.memory_bytes = problem().memory_bytes;
    options.fixed = prepared_.fixed;
    options.watching = problem().watching;
    options.known = state_.known_plans.get();
    options.until = problem().until;
    options.asked = asked_of(prepared_.settings);
    const auto began = std::chrono::steady_clock::now();
    WEFT_TRY(families, estimate(prepared_.plan.graph, prepared_.target, *problem().machine, options));
    search::StageReport report{.stage = "families"};
    report.took = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    report.tried = static_cast<std::int64_t>(families.size());
    if (const auto best = std::ranges::min_element(families, {},
                                                   [](const search::Alternative& family) {
                                                     return std::pair(!family.fits,
                                                                      family.evaluation.seconds);
                                                   });
        best != families.end()) {
      report.seconds = best->evaluation.seconds;
      report.peak_bytes = best->evaluation.peak_bytes;
      report.said = fmt::format("without stages {}{}, by estimate", best->name,
                                best->fits ? " is the fastest" : " is the fastest, and none fits");
    }
    families_ = std::move(report);
    step_.without_stages = std::move(families);
    return {};
  }

  // Estimates decide which plans to search. The displayed times of families are predictions of the
  // plans as they would run.
  void estimate_families_as_run() {
    if (are_as_run_ || !compare_ || is_large()) return;
    are_as_run_ = true;
    for (search::Alternative& family : step_.without_stages) {
      if (out_of_time()) return;
      if (!is_weft()) {
        estimate_by_stages(family);
        continue;
      }
      const auto made = plan_given(state_, prepared_, family.distribution, context_);
      if (!made.ok()) continue;
      family.evaluation = made->spread->chosen.evaluation();
      family.fits = made->spread->fits;
      family.estimated = false;
    }
  }

  void estimate_by_stages(search::Alternative& family) const {
    const auto priced = search::estimate_given(problem(), family.distribution);
    if (!priced.ok()) return;
    const search::PipelineEstimate& found = priced->priced;
    search::Evaluation& step = family.evaluation;
    step.seconds = found.seconds;
    step.peak_bytes = found.peak_bytes;
    step.memory = found.stages[found.fullest].memory;
    step.compute_seconds = 0;
    for (const search::StageCost& stage : found.stages)
      step.compute_seconds =
          std::max(step.compute_seconds, stage.computing * static_cast<double>(found.schedule.micro_batches));
    step.exposed_communication_seconds = std::max(0.0, step.seconds - step.compute_seconds);
    family.fits = priced->fits;
    family.estimated = false;
  }

  static search::StageReport report(const search::ChosenPipeline& found) {
    search::StageReport report{.stage = search::kPipelineStage, .changed = true};
    report.seconds = found.priced.seconds;
    report.peak_bytes = found.priced.peak_bytes;
    report.tried = found.candidates;
    report.took = found.search_seconds;
    report.said = print(found.distribution);
    return report;
  }
  // Chooses the plan without stages.
  PlannedStep without_stages(search::Choice whole,
                             const std::optional<Result<search::ChosenPipeline>>& staged) const {
    if (families_) whole.reports.insert(whole.reports.begin(), *families_);
    search::StageReport report{.stage = search::kPipelineStage};
    const double report_seconds = whole.spread->chosen.prediction.seconds;
    report.seconds = report_seconds;
    report.peak_bytes = whole.spread->chosen.evaluation().peak_bytes;
    report.said = "no plan with stages is faster";
    if (staged && staged->ok()) {
      report.tried = (**staged).candidates;
      report.took = (**staged).search_seconds;
    }
    whole.reports.push_back(std::move(report));
    if (staged && staged->ok() && (**staged).fits && (**staged).priced.seconds < report_seconds)
      whole.simpler = fmt::format("{} takes {}, {:.1f} % less: stages are worth it only above {:.1f} %",
                                  print((**staged).distribution), print_seconds((**staged).priced.seconds),
                                  100 * (1 - (**staged).priced.seconds / report_seconds), 100 * (1 - worth_));
    return {std::move(whole), std::nullopt};
  }

  Result<PlannedStep> take_with_replicas(search::ChosenPipeline found) {
    WEFT_TRY(unequal, search::with_unequal_replicas(problem(), found.distribution, found.priced.seconds));
    return take(unequal ? *std::move(unequal) : std::move(found));
  }
  Result<PlannedStep> take(search::ChosenPipeline found) {
    step_.chosen = std::move(found);
    if (families_) step_.reports.insert(step_.reports.begin(), *families_);
    step_.reports.push_back(report(step_.chosen));
    estimate_families_as_run();
    PlannedStep planned;
    planned.staged = std::move(step_);
    return planned;
  }

  const Knowledge& state_;
  const Observer* context_;
  const Prepared& prepared_;
  const bool compare_;
  const double worth_ = worth_stages(prepared_);
  bool are_as_run_ = false;  // whether the families' times are predictions
  std::optional<search::StageReport> families_;
  StagedStep step_;
};

Error at_statement(Error error, const Prepared& prepared) {
  if (!error.span.known()) error.span = prepared.run->span;
  return error;
}

Result<PlannedStep> plan_anywhere(const Knowledge& state, const Observer* context, const Prepared& prepared,
                                  bool compare, Agreement agreement) {
  if (prepared.trains()) {
    WEFT_TRY(asked, requested_pipeline(prepared.settings, prepared.run->span));
    if (asked) {
      WEFT_TRY_STATUS(check_degrees(prepared, /*searches=*/false));
      WEFT_TRY(batch, needed_batch_of(prepared));
      const std::int64_t micro_batches = asked->micro_batches;
      return StagePlanner(state, context, prepared, batch, micro_batches, compare).given(*std::move(asked));
    }
    const std::optional<Batch> batch = batch_of(prepared);
    const bool searches = batch && is_searched(prepared);
    WEFT_TRY_STATUS(check_degrees(prepared, searches));
    if (searches && !excludes_stages(prepared))
      return StagePlanner(state, context, prepared, *batch, /*micro_batches=*/1, compare).searched();
  } else if (!prepared.settings.distribution.empty()) {
    WEFT_TRY(read, distribute::read_distribution(prepared.settings.distribution));
    if (distribute::is_pipelined(read))
      return user_error(fmt::format("only TRAIN has stages and micro-batches: {}", print(read)),
                        "give INFER a distribution without them");
  }
  if (!prepared.trains()) WEFT_TRY_STATUS(check_degrees(prepared, /*searches=*/false));
  WEFT_TRY(whole, agreement == Agreement::ranks && prepared.ranks > 1
                      ? plan_for_ranks(state, prepared, compare, context)
                      : plan_for(state, prepared, compare, context));
  if (const auto batch = batch_of(prepared); batch && is_priced_by_stages(prepared) && whole.spread)
    return StagePlanner(state, context, prepared, *batch, /*micro_batches=*/1, compare)
        .once(std::move(whole));
  return PlannedStep{std::move(whole), std::nullopt};
}

}  // namespace

Result<PlannedStep> plan_step(const Knowledge& state, const Observer* context, const Prepared& prepared,
                              bool compare, Agreement agreement) {
  Result<PlannedStep> planned = plan_anywhere(state, context, prepared, compare, agreement);
  if (!planned.ok()) return at_statement(std::move(planned).error(), prepared);
  return planned;
}

Result<search::Choice> plan_to_run(const Knowledge& state, const Observer* context,
                                   const Prepared& prepared) {
  if (prepared.trains()) {
    // A given distribution runs as it is, without an estimate.
    WEFT_TRY(asked, requested_pipeline(prepared.settings, prepared.run->span));
    if (asked) {
      WEFT_TRY_STATUS(check_degrees(prepared, /*searches=*/false));
      return plan_pipeline(state, context, prepared, *std::move(asked));
    }
  }
  WEFT_TRY(planned, plan_step(state, context, prepared, /*compare=*/false));
  if (planned.whole) return *std::move(planned.whole);
  if (planned.staged->plan) return *std::move(planned.staged->plan);
  return plan_pipeline(state, context, prepared, std::move(planned.staged->chosen.distribution));
}

}  // namespace weft::planner
