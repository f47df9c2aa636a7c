#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "weft/base/units.h"
#include "weft/parallel/pipeline/cut_parts.h"
#include "weft/parallel/pipeline/pipelined_plan.h"
#include "weft/planner/search/pipeline/choose_pipeline.h"
#include "weft/planner/search/pipeline/cut_layers.h"
#include "weft/planner/search/pipeline/cut_unequal.h"
#include "weft/planner/search/pipeline/stage_estimator.h"
#include "weft/planner/search/pipeline/unequal_replicas.h"

namespace weft::search {

using distribute::Distribution;

namespace {

Status check_hints(const PipelineProblem& problem, const Distribution& given) {
  const auto axis = distribute::stage_axis(given);
  if (!axis) return {};
  const std::string& name = given.mesh.axes[*axis].name;
  for (const FixedPart::Slice& slice : problem.fixed.slices)
    if (slice.axis == name)
      return user_error(
          fmt::format("a hint slices {} on {}, whose ranks are stages: {}", slice.index, name, print(given)),
          "DROP HINT, or put stages on another axis");
  return {};
}

Status check_rows(const PipelineProblem& problem, std::int64_t micro_batches) {
  if (problem.rows % micro_batches == 0) return {};
  std::int64_t near = std::min(micro_batches, problem.rows);
  while (problem.rows % near != 0) --near;
  return user_error(fmt::format("micro-batches need equal numbers of rows: {} do not divide {} = {}",
                                micro_batches, problem.batch, problem.rows),
                    fmt::format("use micro={}", near));
}

// Cuts between whole layers, if the problem asks for them.
Result<std::optional<std::vector<std::size_t>>> stated_cuts(const PipelineProblem& problem,
                                                            const PartCosts& costs, std::size_t positions) {
  const std::vector<std::int32_t> layers = layers_of_parts(costs);
  if (problem.run_layers.empty()) {
    if (!problem.whole_layers || count_layers(layers) == 0) return std::optional<std::vector<std::size_t>>();
    auto equal =
        problem.cluster->stack.equal_layers == 0 ? std::nullopt : cut_equal_layers(layers, positions);
    return equal ? equal : cut_between_layers(layers, work_of(costs), positions);
  }
  auto cuts = problem.run_layers.size() == positions ? cut_layers(layers, problem.run_layers) : std::nullopt;
  if (cuts) return cuts;
  return user_error(fmt::format("expected {} layers in {} virtual stages, found {}", count_layers(layers),
                                positions, fmt::join(problem.run_layers, " ")));
}

}  // namespace

void add_end_of_step(PartCosts& costs, const PartCosts& ends) {
  for (std::size_t p = 0; p < costs.size(); ++p) {
    costs[p].update = ends[p].update;
    costs[p].reducing = ends[p].reducing;
    costs[p].gathering = ends[p].gathering;
    costs[p].parameters = ends[p].parameters;
    costs[p].gradients = ends[p].gradients;
    costs[p].optimizer = ends[p].optimizer;
    costs[p].tied = ends[p].tied;
    costs[p].largest = ends[p].largest;
  }
}

double PipelineProblem::room_on(const cluster::Device* device) const {
  if (memory_bytes <= 0) return std::numeric_limits<double>::infinity();
  // A limit that the user sets applies to all devices; otherwise each has its own memory.
  return device == nullptr || memory_is_asked ? memory_bytes : device->memory_bytes * (1 - memory_reserve);
}

Distribution on_stage(const Distribution& distribution) {
  Distribution within = distribute::within_stage(distribution);
  if (within.mesh.axes.empty()) {
    within.mesh.axes.push_back({"device", 1});
    within.axes.emplace_back();
  }
  return within;
}

Machine within_mesh(const Machine& machine, const plan::Mesh& whole) {
  const auto places = [whole](const plan::Mesh& part) {
    std::vector<std::size_t> at;
    for (const plan::MeshAxis& axis : part.axes) {
      const auto found = std::ranges::find(whole.axes, axis.name, &plan::MeshAxis::name);
      at.push_back(found == whole.axes.end() ? 0 : static_cast<std::size_t>(found - whole.axes.begin()));
    }
    return at;
  };
  Machine made = machine;
  made.costs = [costs = machine.costs, whole, places](const plan::Mesh& part) -> Result<cost::StepCosts> {
    WEFT_TRY(all, costs(whole));
    const std::vector<std::size_t> at = places(part);
    cost::StepCosts some = all;
    some.exchange = [exchange = all.exchange, at](const program::Exchange& what, std::size_t axis,
                                                  std::int64_t bytes) {
      return exchange(what, at[axis], bytes);
    };
    some.wires.clear();
    if (!all.wires.empty())
      for (const std::size_t axis : at) some.wires.push_back(all.wires[axis]);
    return some;
  };
  made.prices = [prices = machine.prices, whole,
                 places](const plan::Mesh& part) -> Result<std::vector<distribute::AxisCost>> {
    WEFT_TRY(all, prices(whole));
    std::vector<distribute::AxisCost> some;
    for (const std::size_t axis : places(part)) some.push_back(all[axis]);
    return some;
  };
  return made;
}

Result<std::vector<double>> work_of_parts(const PipelineProblem& problem, const Distribution& given) {
  if (!problem.work.empty()) return problem.work;
  WEFT_TRY_STATUS(check_rows(problem, given.micro_batches));
  WEFT_TRY(plan, problem.plan_of(problem.rows / given.micro_batches));
  const PartEstimator parts(*plan);
  WEFT_TRY(costs, parts.micro_batch(on_stage(given), within_mesh(*problem.machine, given.mesh)));
  return work_of(costs);
}

std::vector<std::size_t> run_ends(const PipelineEstimate& priced) {
  std::vector<std::size_t> ends;
  for (const StageCost& stage : priced.stages)
    for (const StageCost::Run& run : stage.runs) ends.push_back(run.first + run.count);
  std::ranges::sort(ends);
  return ends;
}

Result<ChosenPipeline> estimate_given(const PipelineProblem& problem, const Distribution& given) {
  const auto unequal =
      std::ranges::find_if(given.axes, [](const distribute::AxisUse& use) { return !use.takes.empty(); });
  if (unequal != given.axes.end()) {
    // Rejects numbers that do not add up, and exchanges between replicas in every micro-batch.
    WEFT_TRY_STATUS(pipeline::distribute_pipelined(*problem.plan, given));
    return estimate_replicas(problem, given, static_cast<std::size_t>(unequal - given.axes.begin()));
  }
  return estimate_with_count(problem, given, given.micro_batches, nullptr);
}

Result<ChosenPipeline> estimate_with_count(const PipelineProblem& problem, const Distribution& given,
                                           std::int64_t micro_batches, const cluster::Device* device) {
  const auto began = std::chrono::steady_clock::now();
  WEFT_TRY_STATUS(check_hints(problem, given));
  WEFT_TRY_STATUS(check_rows(problem, given.micro_batches));
  WEFT_TRY(pricer, StageEstimator::of(problem, given, micro_batches, device));
  const Distribution* const one[] = {&given};
  pricer.simulate(one);
  WEFT_TRY(costs, pricer.costs(given));
  WEFT_TRY(wire, wire_of(problem, given));
  const PartEstimator& parts = pricer.parts();
  const auto positions = static_cast<std::size_t>(pricer.order().schedule.positions());
  std::vector<std::size_t> cuts;
  WEFT_TRY(stated, stated_cuts(problem, costs.at(0).costs, positions));
  if (problem.work.size() == parts.count() && !stack_cuts(costs, pricer.order()))
    cuts = pipeline::cut_parts(problem.work, positions);
  else if (stated)
    cuts = *std::move(stated);
  else
    cuts = move_cuts(costs, pricer.order(), cut_unequal(costs, pricer.order()), wire);
  WEFT_TRY(priced, estimate_pipeline(costs, pricer.order(), cuts, wire));
  ChosenPipeline made;
  made.distribution = given;
  made.least_seconds = least_seconds(costs, pricer.shape());
  made.priced = std::move(priced);
  made.fits = made.priced.fits;
  made.costs = std::move(costs);
  made.wire = wire;
  for (std::size_t p = 0; p < parts.count(); ++p) made.parts.push_back(parts.name(p));
  made.layers = parts.folded_layers() > 0 ? parts.layers() : 0;
  made.folded = parts.folded_layers();
  made.search_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  return made;
}

}  // namespace weft::search
