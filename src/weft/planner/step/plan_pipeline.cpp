#include "weft/planner/step/plan_pipeline.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "weft/parallel/pipeline/pipelined_plan.h"
#include "weft/parallel/pipeline/slice_boundaries.h"
#include "weft/parallel/train/local_norms.h"
#include "weft/planner/step/plan_for.h"
#include "weft/planner/step/statement_pipeline.h"

namespace weft::planner {

using distribute::Distribution;

namespace {

// A distribution found for whole batches may not work with micro-batches, if examples are sliced
// first along one index and then along another. Then it is tried without exceptions, then with only
// the batch sliced.
Distribution that_goes_in_time(const plan::Graph& graph, Distribution found, std::int64_t micro_batches) {
  found.micro_batches = micro_batches;
  Distribution plain = found;
  plain.exceptions.clear();
  Distribution batches = plain;
  if (const auto batch = pipeline::batch_index(graph); batch.ok())
    for (distribute::AxisUse& use : batches.axes) use.slice = {std::string(graph.text(*batch))};
  for (const Distribution& other : {found, plain, batches})
    if (pipeline::distribute_pipelined(graph, other).ok()) return other;
  return found;  // the error is then about this one
}

}  // namespace

Result<Distribution> complete_pipeline(const Knowledge& state, const Observer* context,
                                       const Prepared& prepared, Distribution asked) {
  if (prepared.ranks == 1 && asked.mesh.axes.size() == 1 && asked.mesh.ranks() == 1)
    asked.mesh = {}, asked.axes = {};
  if (asked.mesh.axes.empty() && prepared.ranks > 1) {
    Prepared whole(prepared.request());
    whole.settings.micro_batches = 1;
    whole.settings.rules = false;
    whole.sizes = prepared.sizes;
    whole.plan.graph = prepared.plan.graph.clone();
    WEFT_TRY(spread, plan_for(state, whole, /*compare=*/false, context));
    asked = that_goes_in_time(prepared.plan.graph, spread.spread->distribution, asked.micro_batches);
  }
  WEFT_TRY(again, recompute_of(prepared.settings));
  asked.recompute = std::move(again);
  const std::int64_t ranks = asked.mesh.axes.empty() ? 1 : asked.mesh.ranks();
  if (ranks != prepared.ranks)
    return user_error(
        fmt::format("the distribution has {} ranks, {} has {}", ranks, prepared.target.name, prepared.ranks),
        "axis sizes multiply: 'stage=2: stage; data=2: slice b' is for 4 ranks", prepared.run->span);
  return asked;
}

namespace {

// Where stages are cut: at the ends used for the estimate. Ranks of a launcher cut by the work of
// parts, as do all if the step cannot be estimated. Both are empty with one stage.
struct Cuts {
  std::vector<double> work;
  std::vector<std::size_t> ends;
};

Cuts cuts_in_time(const Knowledge& state, const Observer* context, const Prepared& prepared,
                  const Distribution& distribution) {
  const auto batch = batch_of(prepared);
  if (!batch || !distribute::stage_axis(distribution)) return {};
  const StatementPipeline made(state, context, prepared, *batch, distribution.micro_batches);
  const bool differ = distribute::has_stage_meshes(distribution) || made.problem().cluster->is_mixed();
  if (made.problem().work.empty()) {
    const auto priced = search::estimate_given(made.problem(), made.as_priced(distribution));
    if (priced.ok()) return {{}, search::run_ends(priced->priced)};
    if (differ) return {};
  }
  auto work = search::work_of_parts(made.problem(), made.as_priced(distribution));
  return {work.ok() ? *std::move(work) : std::vector<double>(), {}};
}

// True for ranks of a launcher. Their costs differ, so they must not decide on common choices.
bool plans_alone(const StatementPipeline& problem) { return !problem.problem().work.empty(); }

// Whether stages send slices: as set, or if that makes a step faster.
Result<bool> sends_slices(const Knowledge& state, const Observer* context, const Prepared& prepared,
                          const Distribution& distribution) {
  if (!distribute::stage_axis(distribution) || distribute::has_stage_meshes(distribution)) return false;
  if (prepared.settings.slice_sends) return *prepared.settings.slice_sends;
  const auto batch = batch_of(prepared);
  if (!batch) return false;
  const StatementPipeline made(state, context, prepared, *batch, distribution.micro_batches);
  if (plans_alone(made)) return false;
  const auto priced = search::estimate_given(made.problem(), made.as_priced(distribution));
  return priced.ok() && priced->priced.slices;
}

// Codecs that make a step faster or that the settings require.
Result<search::CodecUse> codecs_in_time(const Knowledge& state, const Observer* context,
                                        const Prepared& prepared, const distribute::DistributedPlan& plan) {
  const Distribution& distribution = plan.time->distribution;
  WEFT_TRY(batch, needed_batch_of(prepared));
  const StatementPipeline made(state, context, prepared, batch, distribution.micro_batches);
  search::PipelineProblem problem = made.problem();
  const Distribution priced = made.as_priced(distribution);
  return search::choose_use(plan, prepared.settings.codecs,
                            [&](const search::CodecUse& use) -> Result<search::EstimatedUse> {
                              if (plans_alone(made)) return search::EstimatedUse{};
                              problem.codecs = use;
                              WEFT_TRY(step, search::estimate_given(problem, priced));
                              return search::EstimatedUse{step.priced.seconds, step.fits};
                            });
}

}  // namespace

Result<search::Choice> plan_pipeline(const Knowledge& state, const Observer* context,
                                     const Prepared& prepared, Distribution asked) {
  if (asked.offload)
    return user_error("optimizer states are offloaded only in plans for clusters, which Weft does not run",
                      "here memory_limit spills to a file", prepared.run->span);
  WEFT_TRY(complete, complete_pipeline(state, context, prepared, std::move(asked)));
  const Cuts cuts = cuts_in_time(state, context, prepared, complete);
  auto plan = pipeline::distribute_pipelined(prepared.plan.graph, complete, {}, cuts.work, cuts.ends);
  if (!plan.ok()) {
    Error error = std::move(plan).error();
    if (!error.span.known()) error.span = prepared.run->span;
    return error;
  }
  search::Choice choice;
  WEFT_TRY(slices, sends_slices(state, context, prepared, complete));
  if (slices) {
    WEFT_TRY(sliced, pipeline::slice_boundaries(*plan));
    choice.slices = print(sliced);
    *plan = std::move(sliced.plan);
  }
  if (prepared.settings.codecs.any()) {
    WEFT_TRY(use, codecs_in_time(state, context, prepared, *plan));
    WEFT_TRY(coded, search::place_codecs(*plan, use));
    *plan = std::move(coded.plan);
    choice.coded = std::move(coded.exchanges);
    choice.codecs = std::move(use);
  }
  choice.plan = prepared.plan.graph.clone();
  choice.spread.emplace();
  choice.spread->distribution = std::move(complete);
  choice.spread->chosen.plan = std::move(*plan);
  return choice;
}

}  // namespace weft::planner
