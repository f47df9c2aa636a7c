#include "weft/app/session/explain_in_time.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "weft/app/explain/in_time.h"
#include "weft/app/session/explain_recipe.h"
#include "weft/app/session/measure_in_time.h"
#include "weft/app/session/plan_for.h"
#include "weft/app/session/plan_in_time.h"
#include "weft/app/session/prove_plan.h"
#include "weft/app/session/step_page.h"
#include "weft/app/session/time_problem.h"
#include "weft/app/session/trace.h"
#include "weft/app/session/written_plan.h"
#include "weft/base/units.h"
#include "weft/formats/chakra.h"
#include "weft/formats/chakra_program.h"
#include "weft/parallel/pipeline/unroll.h"
#include "weft/parallel/train/local_norms.h"
#include "weft/planner/search/distribution/lower_bound.h"
#include "weft/planner/search/pipeline/unequal_replicas.h"
#include "weft/predict/cost/mesh_links.h"
#include "weft/predict/cost/plan_cost.h"
#include "weft/program/tasks/program.h"

namespace weft::session {
namespace {

using distribute::Distribution;

// Plans in time are looked for where devices are many; ranks of this machine run those that they are given.
bool is_searched(const Prepared& prepared) {
  return prepared.trains() && prepared.ranks > 1 && !cost::is_local(prepared.target) &&
         prepared.gpu == nullptr && search::check_in_time(asked_of(prepared.settings)).ok();
}

// Where the families of plans without stages need so many times the memory, none of their neighbours fits.
constexpr double kFarTooLarge = 1.5;

// Steps without stages are simpler: stages must save more than this of their time. No more than what a user notices,
// since a plan is not to get slower because another was allowed.
constexpr double kWorthStages = 0.992;

class InTimeExplainer {
 public:
  InTimeExplainer(const Session::State& state, const Context& context, const Prepared& prepared,
                  explain::DistributedExplanation about, const ExplainOptions& options, const Batch& batch,
                  std::int64_t micro_batches)
      : state_(state),
        context_(context),
        prepared_(prepared),
        options_(options),
        made_(state, &context, prepared, batch, micro_batches) {
    explained_.about = std::move(about);
    explained_.batch = batch.name;
    explained_.rows = batch.rows;
  }

  Result<std::string> given(Distribution asked) {
    explained_.given = !asked.mesh.axes.empty();
    WEFT_TRY(distribution, complete_in_time(state_, &context_, prepared_, std::move(asked)));
    const bool runs_here = cost::is_local(prepared_.target) || prepared_.gpu != nullptr;
    search::InTimeProblem problem = problem_;
    if (runs_here || prepared_.settings.codecs.any()) {
      WEFT_TRY(made, plan_in_time(state_, &context_, prepared_, distribution));
      explained_.about.coded = made.coded;
      explained_.about.slices = made.slices;
      problem.codecs = codecs_ = made.codecs;
      (runs_here ? running_ : planned_) = std::move(made);
    }
    WEFT_TRY(priced, search::price_given(problem, made_.as_priced(distribution)));
    priced.distribution = std::move(distribution);
    if (prepared_.ranks > 1) WEFT_TRY_STATUS(look_at_families(search::estimate_families));
    return say(priced);
  }

  // The quicker of the best plan without stages and the best in time. Where no family of the former fits and the
  // latter is far quicker than all of them, others are not looked for; and stages are not where there is little to gain.
  // Large plans are looked at in time first, and without stages only where estimates leave hope.
  Result<std::optional<std::string>> searched(std::optional<Result<search::Choice>>& untimed) {
    constexpr double kFarQuicker = 0.5;
    const std::optional<std::string> nothing;
    WEFT_TRY_STATUS(look_at_families(is_large() ? search::estimate_best : search::estimate_families));
    double smallest = std::numeric_limits<double>::infinity(), quickest = smallest;
    bool fits = false;
    for (const search::Alternative& family : explained_.without_stages) {
      smallest = std::min(smallest, family.evaluation.peak_bytes);
      quickest = std::min(quickest, family.evaluation.seconds);
      fits = fits || family.fits;
    }
    std::optional<Result<search::ChosenInTime>> found;
    if (!fits || is_large()) {
      found = in_time_below(std::numeric_limits<double>::infinity());
      if (found->ok() && ((!fits && (**found).priced.seconds <= kFarQuicker * quickest) ||
                          (fits && !may_be_beaten((**found).priced.seconds))))
        return said(**found);
    }
    // Another than these may fit, and is looked for, unless that is out of reach.
    if (fits || smallest <= kFarTooLarge * problem_.memory_bytes) {
      untimed =
          plan_for(state_, prepared_, /*compare=*/true, &context_, fits ? Advice::given : Advice::not_asked);
      if (untimed->ok()) {
        const search::Choice& choice = **untimed;
        const search::Evaluation step = choice.spread->chosen.evaluation();
        are_as_run_ = true;
        explained_.without_stages = choice.spread->alternatives;
        if (!found && !was_interrupted(choice) && may_gain(choice, step))
          found = in_time_below(kWorthStages * step.seconds);
        // Where devices differ, replicas of it may take unequal parts of the batch.
        const double in_time = found && found->ok() ? (**found).priced.seconds : step.seconds;
        WEFT_TRY(unequal, search::with_unequal_replicas(problem_, choice.spread->distribution,
                                                        kWorthStages * std::min(in_time, step.seconds)));
        if (unequal) found = *std::move(unequal);
        if (!found || !found->ok() || (**found).priced.seconds >= kWorthStages * step.seconds) return nothing;
        explained_.without_stages.insert(
            explained_.without_stages.begin(),
            {"without stages", choice.spread->distribution, step, /*fits=*/true, {}, /*estimated=*/false});
        return said(**found);
      }
    }
    if (!found) found = in_time_below(std::numeric_limits<double>::infinity());
    if (found->ok()) return said(**found);
    untimed.reset();  // what does not fit is told once more, with advice
    return nothing;
  }

 private:
  bool is_large() const { return prepared_.plan.graph.node_count() > search::kMostNodesCompared; }
  // By a plan without stages, once it passed all that follows.
  bool may_be_beaten(double seconds) const {
    return std::ranges::any_of(explained_.without_stages, [&](const search::Alternative& other) {
      return other.fits && search::may_take_less(other.evaluation, prepared_.settings.codecs, seconds);
    });
  }
  // Stages spare exchanges that ranks wait for, and work that ranks along an axis all do.
  static bool may_gain(const search::Choice& untimed, const search::Evaluation& step) {
    return step.exposed_communication_seconds >= (1 - kWorthStages) * step.seconds ||
           std::ranges::any_of(untimed.spread->distribution.axes,
                               [](const distribute::AxisUse& use) { return use.slice.empty(); });
  }
  // With the codecs that pay, which may make a plan the quickest that is not without them.
  Result<search::ChosenInTime> in_time_below(double seconds) {
    search::InTimeProblem problem = problem_;
    if (!prepared_.settings.codecs.any()) {
      problem.beat_seconds = seconds;
      return search::choose_in_time(problem);
    }
    WEFT_TRY(found, search::choose_in_time(problem));
    WEFT_TRY(made, plan_in_time(state_, &context_, prepared_, found.distribution));
    problem.codecs = made.codecs;
    WEFT_TRY(coded, search::price_given(problem, made_.as_priced(found.distribution)));
    static_cast<search::PlanInTime&>(found) = {found.distribution, std::move(coded.priced), coded.fits};
    explained_.about.coded = made.coded;
    codecs_ = made.codecs;
    planned_ = std::move(made);
    return found;
  }
  Result<std::optional<std::string>> said(const search::ChosenInTime& found) {
    WEFT_TRY(unequal, search::with_unequal_replicas(problem_, found.distribution, found.priced.seconds));
    WEFT_TRY(text, say(unequal ? *unequal : found));
    return std::optional<std::string>(std::move(text));
  }

  // Every rank's program, as it is priced.
  Status write_chakra(const distribute::DistributedPlan& plan) const {
    constexpr double kMostNodes = 1e7;
    const plan::Mesh& mesh = plan.whole_mesh();
    const auto micro_batches = static_cast<double>(plan.time->distribution.micro_batches);
    if (static_cast<double>(plan.graph.node_count()) * micro_batches * mesh.ranks() > kMostNodes)
      return user_error(fmt::format("{} ranks with {} micro-batches of {} nodes each are too many for traces",
                                    mesh.ranks(), micro_batches, plan.graph.node_count()),
                        "fewer ranks or micro-batches");
    WEFT_TRY(costs, problem_.machine->costs(made_.as_priced(plan.time->distribution).mesh));
    std::vector<program::Program> programs;
    for (std::int32_t rank = 0; rank < mesh.ranks(); ++rank) {
      WEFT_TRY(unrolled, pipeline::unroll(plan, rank));
      program::CompileOptions how = costs.compile;
      how.tiles = how.pack = false;
      how.turns = unrolled.turns;
      WEFT_TRY(compiled, program::compile(std::make_shared<plan::Graph>(std::move(unrolled.graph)), how));
      programs.push_back(std::move(compiled));
    }
    WEFT_TRY(trace, formats::execution_trace(programs, mesh, costs));
    return formats::write_chakra(trace, options_.chakra);
  }

  Status write_files() const {
    if (!options_.page.empty()) {
      explain::StepPage page = step_page(explained_);
      if (measured_) add_measured(page, *measured_);
      WEFT_TRY_STATUS(write_step_page(options_.page, page));
    }
    return options_.timeline.empty() ? Status() : write_trace(options_.timeline, trace());
  }

  // A process for each stage as predicted, and for each rank as measured.
  formats::Trace trace() const {
    formats::Trace trace;
    const search::PricedInTime& priced = explained_.choice->priced;
    std::int32_t process = 0;
    for (std::size_t s = 0; s < priced.stages.size(); ++s, ++process) {
      trace.names.push_back({process, -1, fmt::format("predicted: stage {}", s)});
      add_passes(trace, priced.schedule.orders[s], priced.price.slots[s], process, 0);
      const double passed = priced.price.slots[s].empty() ? 0 : priced.price.slots[s].back().end;
      trace.events.push_back(
          {"sums of gradients and update", "update", process, 0, passed, priced.stages[s].update});
    }
    if (!measured_) return trace;
    for (const RankInTime& rank : measured_->ranks) {
      add_rank(trace, *rank.program, rank.timeline, process,
               fmt::format("measured: rank {}, stage {}", rank.rank, rank.stage));
      add_passes(trace, rank.passes, rank.slots, process++,
                 static_cast<std::int32_t>(rank.program->streams.size()));
    }
    return trace;
  }

  Status look_at_families(decltype(&search::estimate_families) estimate) {
    search::ChooseOptions options;
    options.memory_bytes = problem_.memory_bytes;
    options.fixed = prepared_.fixed;
    options.watching = problem_.watching;
    options.known = state_.known_plans.get();
    options.until = problem_.until;
    options.asked = asked_of(prepared_.settings);
    WEFT_TRY(families, estimate(prepared_.plan.graph, prepared_.target, *problem_.machine, options));
    explained_.without_stages = std::move(families);
    return {};
  }

  // Estimates say which plans to look for. What is shown of a family is what it takes as it would be run.
  void price_families() {
    if (are_as_run_ || is_large()) return;
    are_as_run_ = true;
    for (search::Alternative& family : explained_.without_stages) {
      if (std::chrono::steady_clock::now() >= problem_.until) return;
      const auto made = plan_given(state_, prepared_, family.distribution, &context_);
      if (!made.ok()) continue;
      family.evaluation = made->spread->chosen.evaluation();
      family.fits = made->spread->fits;
      family.estimated = false;
    }
  }

  // The plan itself in place of what is said of it, or beside it.
  Result<std::optional<std::string>> write_plan(const search::ChosenInTime& choice) const {
    const auto written = [&](const search::Choice& made) -> Result<std::optional<std::string>> {
      const distribute::DistributedPlan& plan = made.spread->chosen.plan;
      if (options_.plan) return std::optional(print_written(plan, prepared_));
      WEFT_TRY_STATUS(write_chakra(plan));
      return std::optional<std::string>();
    };
    if (!options_.plan && options_.chakra.empty()) return std::optional<std::string>();
    if (running_) return written(*running_);
    WEFT_TRY(made, planned(choice.distribution));
    return written(*made);
  }

  // What other machines would run.
  Result<const search::Choice*> planned(const Distribution& distribution) const {
    if (!planned_) {
      WEFT_TRY(made, plan_in_time(state_, &context_, prepared_, distribution));
      planned_ = std::move(made);
    }
    return &*planned_;
  }

  Result<std::string> say(const search::ChosenInTime& choice) {
    if (is_recipe(options_.form))
      return explain_recipe(state_, context_, prepared_, choice.distribution, choice.priced.seconds,
                            options_.form);
    WEFT_TRY(text, write_plan(choice));
    if (text) return *std::move(text);
    explain::DistributedExplanation& about = explained_.about;
    explained_.choice = &choice;
    if (choice.priced.slices && about.slices.empty())
      about.slices = "ranks of a stage that have the same to send send a slice of it each";
    search::LowerBound bound = search::lower_bound(prepared_.plan.graph, *problem_.cluster);
    explained_.lower_bound_seconds = bound.seconds;
    explained_.lower_bound_why = std::move(bound.why);
    price_families();
    for (search::Alternative& family : explained_.without_stages)
      family.why_not = search::why_slower(family, choice.priced.seconds, problem_.memory_bytes);
    explained_.batch_norms = train::count_batch_norms(prepared_.plan.graph);
    about.memory_bytes = std::isfinite(choice.priced.room) ? choice.priced.room : problem_.memory_bytes;
    about.devices_a_rank = workers_of(prepared_.settings, prepared_.target);
    about.model_flops = cost::plan_flops(prepared_.plan.graph);
    for (const KeptHint& hint : state_.hints) about.hints.push_back(hint.text);
    about.verbose = options_.verbose;
    about.brief = options_.summary;
    about.width = context_.width;
    WEFT_TRY(proof, prove(choice));
    about.planning_seconds = prepared_.seconds_of_planning();
    about.proof = std::move(proof.text);
    about.proven = proof.holds;
    if (options_.analyze) {
      WEFT_TRY(measured, measure_in_time(state_, context_, prepared_, *running_));
      explained_.measured = measured.step;
      measured_ = std::move(measured);
    }
    WEFT_TRY_STATUS(write_files());
    return options_.json ? print_json(explained_) : print_text(explained_);
  }

  // Every stage run over the field, where that is a matter of seconds.
  bool is_quickly_proven(const Distribution& distribution) const {
    constexpr double kMostRuns = 20'000;  // of a node, by a rank, for a micro-batch
    constexpr std::int64_t kMicroBatches = 4;
    auto runs = static_cast<double>(prepared_.plan.graph.node_count()) *
                static_cast<double>(std::min(distribution.micro_batches, kMicroBatches));
    for (const plan::MeshAxis& axis : distribute::within_stage(distribution).mesh.axes)
      runs *= std::min(axis.ranks, 2);
    return runs <= kMostRuns;
  }

  // A micro-batch on the mesh of a stage.
  Result<Proof> prove_within(const Prepared& micro, const Distribution& within) {
    const search::Machine machine =
        search::within_mesh((*problem_.machine), explained_.choice->distribution.mesh);
    WEFT_TRY(prices, machine.prices(within.mesh));
    search::Choice spread;
    spread.plan = micro.plan.graph.clone();
    spread.until = problem_.until;
    WEFT_TRY(plan, distribute::distribute(micro.plan.graph, within, {.prices = std::move(prices)}));
    if (codecs_.any()) {
      WEFT_TRY(coded, search::place_codecs(plan, codecs_));
      plan = std::move(coded.plan);
    }
    spread.spread.emplace();
    spread.spread->distribution = within;
    spread.spread->chosen.plan = std::move(plan);
    return require_proof(state_, micro, micro.plan.graph, spread);
  }

  // What ranks of this machine run is proven as they run it, and so are small plans of others. Of large ones two
  // halves are: a micro-batch within a stage, and the order of all passes, which is verified when priced.
  Result<Proof> prove(const search::ChosenInTime& choice) {
    if (running_) return require_proof(state_, prepared_, prepared_.plan.graph, *running_);
    const Distribution& distribution = choice.distribution;
    if (is_quickly_proven(distribution) && !distribution.offload)
      if (const auto plan = planned(distribution); plan.ok()) {
        WEFT_TRY(whole, require_proof(state_, prepared_, prepared_.plan.graph, **plan));
        if (whole.holds) return whole;
      }
    WEFT_TRY(micro, made_.recomputed(explained_.rows / distribution.micro_batches, distribution.recompute));
    Proof proof{true, "a stage is one device"};
    std::vector<Distribution> proven;  // meshes
    for (std::size_t stage = 0; stage < choice.priced.stages.size() && proof.holds; ++stage) {
      const Distribution within =
          search::on_stage(distribute::as_in_stage(distribution, static_cast<std::int32_t>(stage)));
      if (within.mesh.ranks() == 1 || std::ranges::find(proven, within) != proven.end()) continue;
      WEFT_TRY(found, prove_within(micro, within));
      if (proven.empty() || !found.holds) proof = std::move(found);
      proven.push_back(within);
    }
    const pipeline::Schedule& schedule = choice.priced.schedule;
    proof.text = fmt::format(
        "a micro-batch{}: {}\nits schedule: verified, every F, B and W of {} micro-batch{} once on each of "
        "{} "
        "stage{}, in order, without deadlock\nnot run as its ranks would: sends between stages and sums over "
        "micro-batches are proven of smaller plans",
        proven.size() > 1 ? fmt::format(" on each of {} meshes", proven.size()) : std::string(), proof.text,
        schedule.micro_batches, schedule.micro_batches == 1 ? "" : "es", schedule.stages,
        schedule.stages == 1 ? "" : "s");
    if (codecs_.activations) proof.text += "\nwhat goes from stage to stage is equal up to codecs";
    return proof;
  }

  const Session::State& state_;
  const Context& context_;
  const Prepared& prepared_;
  const ExplainOptions& options_;
  TimeProblem made_;
  const search::InTimeProblem& problem_ = made_.problem();
  std::optional<search::Choice> running_;          // where this machine runs it
  mutable std::optional<search::Choice> planned_;  // for others, once it was asked for
  std::optional<MeasurementInTime> measured_;
  search::CodecUse codecs_;  // of what is explained
  bool are_as_run_ = false;  // the families' times
  explain::InTimeExplanation explained_;
};

}  // namespace

Result<std::optional<std::string>> explain_in_time(const Session::State& state, const Context& context,
                                                   const Prepared& prepared,
                                                   explain::DistributedExplanation about,
                                                   const ExplainOptions& options,
                                                   std::optional<Result<search::Choice>>& untimed) {
  const std::optional<std::string> nothing;
  if (!prepared.settings.distribution.empty()) {
    WEFT_TRY(read, distribute::read_distribution(prepared.settings.distribution));
    if (distribute::is_in_time(read) && !prepared.trains())
      return user_error(fmt::format("stages and micro-batches are of TRAIN: {}", print(read)),
                        "INFER takes a distribution without them");
    return nothing;
  }
  if (!is_searched(prepared)) return nothing;
  const std::optional<Batch> batch = batch_of(prepared);
  if (!batch) return nothing;
  return InTimeExplainer(state, context, prepared, std::move(about), options, *batch, /*micro_batches=*/1)
      .searched(untimed);
}

Answer explain_asked_in_time(const Session::State& state, const Context& context, const Prepared& prepared,
                             explain::DistributedExplanation about, const ExplainOptions& options,
                             const Distribution& asked) {
  if (options.analyze && !cost::is_local(prepared.target) && prepared.gpu == nullptr)
    return not_this_machine(prepared);
  WEFT_TRY(batch, needed_batch_of(prepared));
  auto said = InTimeExplainer(state, context, prepared, std::move(about), options, batch, asked.micro_batches)
                  .given(asked);
  if (said.ok()) return *std::move(said);
  Error error = std::move(said).error();
  if (!error.span.known()) error.span = prepared.run->span;
  return error;
}

}  // namespace weft::session
