#include "weft/planner/search/pipeline/synthesize_schedule.h"

#include <algorithm>
#include <cmath>

#include "weft/parallel/pipeline/library.h"
#include "weft/parallel/pipeline/synthesized.h"
#include "weft/planner/search/pipeline/cut_unequal.h"

namespace weft::search {
namespace {

using distribute::Distribution;

constexpr double kWorthSynthesis =
    0.995;  // of the previous seconds: shipped schedules are easier to understand
constexpr double kMostSynthesizedPasses = 60'000;  // a few tenths of a second

// If W is split from B, activations recomputed for B would have to be kept until W. The name of a
// synthesized schedule cannot state unequal micro-batch counts or different meshes.
bool may_be_synthesized(const PipelineProblem& problem, const ChosenPipeline& found) {
  const Distribution& given = found.distribution;
  return found.fits && found.replicas.empty() && distribute::stage_axis(given) && problem.work.empty() &&
         !problem.codecs.any() && given.recompute.is_nothing() &&
         problem.recomputed.value_or(train::Recompute()).is_nothing() &&
         found.priced.schedule.route != pipeline::Route::both_ways &&
         found.priced.bubble() > (1 - kWorthSynthesis) * found.priced.seconds;
}

// Times and memory of the stages. Nothing if a stage has no memory for one micro-batch.
std::optional<pipeline::SynthesisRequest> request_of(const PipelineEstimate& priced) {
  const auto micro_batches = static_cast<double>(priced.schedule.micro_batches);
  pipeline::SynthesisRequest request;
  request.stages = priced.schedule.stages;
  request.times = pipeline::Times::alike(request.stages, 0, 0, 0, 0);
  for (std::size_t s = 0; s < priced.stages.size(); ++s) {
    const StageCost& stage = priced.stages[s];
    request.times.forward[s] = stage.forward;
    request.times.backward[s] = stage.backward;
    request.times.weight[s] = stage.weight;
    request.times.transfer[s] = stage.transfer;
    const double each = stage.in_flight > 0 ? stage.memory.activations / stage.in_flight : 0;
    const double room = priced.room - (stage.memory.total() - stage.memory.activations);
    const double passes = each > 0 ? std::min(room / each, micro_batches) : micro_batches;
    if (!(passes >= 1)) return std::nullopt;
    request.memory.push_back(passes);
  }
  return request;
}

}  // namespace

std::optional<ChosenPipeline> with_synthesized_schedule(const PipelineProblem& problem,
                                                        const ChosenPipeline& found) {
  if (!may_be_synthesized(problem, found)) return {};
  const auto request = request_of(found.priced);
  if (!request) return {};
  const std::string name = pipeline::synthesized_name(*request);
  const auto text = pipeline::find_schedule(name);
  if (!text.ok()) return {};
  const std::size_t axis = *distribute::stage_axis(found.distribution);
  std::optional<ChosenPipeline> best;
  double seconds = kWorthSynthesis * found.priced.seconds;
  for (const std::int32_t chunks : {1, 2}) {
    const TimeShape shape{request->stages, chunks, found.priced.schedule.micro_batches, *text};
    const double passes = 3.0 * shape.stages * chunks * static_cast<double>(shape.micro_batches);
    if (passes > kMostSynthesizedPasses ||
        static_cast<std::size_t>(shape.stages) * static_cast<std::size_t>(chunks) > found.parts.size())
      break;
    const auto order = unfold(shape);
    if (!order.ok()) continue;
    const auto cuts = move_cuts(found.costs, *order, cut_unequal(found.costs, *order), found.wire);
    auto priced = estimate_pipeline(found.costs, *order, cuts, found.wire);
    if (!priced.ok() || !priced->fits || priced->seconds >= seconds) continue;
    seconds = priced->seconds;
    best = found;
    best->priced = *std::move(priced);
    best->distribution.schedule = name;
    best->distribution.axes[axis].chunks = chunks;
  }
  return best;
}

}  // namespace weft::search
