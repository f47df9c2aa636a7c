#include "weft/planner/search/pipeline/stage_estimator.h"

#include <algorithm>

#include <fmt/format.h>

#include "weft/base/parallel_for.h"
#include "weft/parallel/pipeline/library.h"
#include "weft/planner/search/pipeline/offload.h"
#include "weft/planner/search/pipeline/stage_cost_cache.h"
#include "weft/planner/search/pipeline/stage_devices.h"

namespace weft::search {

using distribute::Distribution;

namespace {

// Whether the ranks along an axis compute one micro-batch together; with a sharded batch each has its own.
bool shares_micro_batch(const distribute::AxisUse& use) {
  return !use.stage && use.shard == distribute::Shard::nothing && use.slice.size() > 1;
}

// Among axes that stages use differently. Activations are gathered along these between stages.
double slowest_that_differs(const Distribution& given, const std::vector<cost::MeshLink>& links) {
  double slowest = 0;
  for (std::size_t axis = 0; axis < given.axes.size(); ++axis)
    if (const double rate = links[axis].bytes_per_second; !given.axes[axis].in_stages.empty() && rate > 0)
      slowest = slowest > 0 ? std::min(slowest, rate) : rate;
  return slowest;
}

// By mesh axis. Links between ranks of this machine have no bandwidth, so it is derived from the
// cost of a small and a large message.
Result<std::vector<cost::MeshLink>> links_of(const PipelineProblem& problem, const Distribution& given) {
  WEFT_TRY(links, cost::mesh_links(*problem.cluster, given.mesh));
  if (std::ranges::all_of(links, [](const cost::MeshLink& link) { return link.bytes_per_second > 0; }))
    return links;
  WEFT_TRY(costs, problem.machine->costs(given.mesh));
  constexpr std::int64_t kLittle = 1, kMuch = 1 << 20;
  program::Exchange message;
  message.kind = program::Exchange::Kind::send;
  for (std::size_t axis = 0; axis < links.size(); ++axis) {
    if (links[axis].bytes_per_second > 0) continue;
    links[axis].latency_seconds = costs.exchange(message, axis, kLittle).seconds();
    const double more = costs.exchange(message, axis, kMuch).seconds() - links[axis].latency_seconds;
    if (more > 0) links[axis].bytes_per_second = static_cast<double>(kMuch) / more;
  }
  return links;
}

}  // namespace

Result<cost::MeshLink> wire_of(const PipelineProblem& problem, const Distribution& given) {
  const auto axis = distribute::stage_axis(given);
  if (!axis) return cost::MeshLink();
  WEFT_TRY(links, links_of(problem, given));
  return links[*axis];
}

Result<StageEstimator> StageEstimator::of(const PipelineProblem& problem, const Distribution& given,
                                          std::int64_t micro_batches, const cluster::Device* device) {
  StageEstimator made;
  made.problem_ = &problem;
  made.device_ = device;
  WEFT_TRY(schedule, pipeline::find_schedule(given.schedule.empty() ? "1f1b" : given.schedule));
  WEFT_TRY_STATUS(cost::mesh_links(*problem.cluster, given.mesh));
  const auto axis = distribute::stage_axis(given);
  made.shape_ = {axis ? given.mesh.axes[*axis].ranks : 1,
                 axis ? chunks_of(*schedule, given.axes[*axis].chunks) : 1, micro_batches, schedule};
  if (problem.cache != nullptr) made.order_ = problem.cache->schedules().at(made.shape_);
  if (made.order_ == nullptr) {
    WEFT_TRY(order, unfold(made.shape_));
    made.order_ = std::make_shared<const Unfolded>(std::move(order));
  }
  if (device == nullptr) made.devices_ = devices_of_stages(*problem.cluster, given);
  // The plan already contains the recomputation that the user set, but not what the search chose.
  const train::Recompute again = problem.recomputed ? train::Recompute() : given.recompute;
  const std::int64_t rows = problem.rows / given.micro_batches;
  if (made.uses_cache() && !distribute::has_stage_meshes(given)) {
    const std::int64_t replicas = one_replica(on_stage(given), problem.batch).replicas;
    WEFT_TRY(parts, problem.cache->parts(problem, rows % replicas == 0 ? rows / replicas : rows, again));
    made.parts_ = std::move(parts);
  } else {
    WEFT_TRY(plan, problem.plan_of(rows));
    made.parts_ = std::make_shared<const PartEstimator>(*plan, again);
  }
  if (static_cast<std::size_t>(made.order_->schedule.positions()) > made.parts_->count())
    return user_error(
        fmt::format("too many stages: found {} stages{}, but the model splits into {} parts",
                    made.shape_.stages,
                    made.shape_.chunks > 1 ? fmt::format(" of {} chunks", made.shape_.chunks) : std::string(),
                    made.parts_->count()),
        "use fewer stages, or fewer chunks per stage");
  return made;
}

bool StageEstimator::uses_cache() const {
  return problem_->cache != nullptr && device_ == nullptr && devices_.empty() && !problem_->codecs.any();
}

std::vector<StageEstimator::Stage> StageEstimator::stages_of(const Distribution& given) const {
  std::vector<Stage> stages;
  for (std::int32_t s = 0; s < shape_.stages; ++s) {
    const cluster::Device* const device = devices_.empty() ? device_ : &devices_[static_cast<std::size_t>(s)];
    Stage stage{distribute::as_in_stage(given, s), device, {}};
    stage.key = fmt::format("{} on {}", print(stage.all), device != nullptr ? device->name : std::string());
    stages.push_back(std::move(stage));
    if (devices_.empty() && !distribute::has_stage_meshes(given)) break;  // all are like the first
  }
  return stages;
}

// Micro-batch and end-of-step costs.
Result<PartCosts> StageEstimator::look_at(const Stage& stage) const {
  if (uses_cache() && !distribute::has_stage_meshes(stage.all)) {
    WEFT_TRY(costs, problem_->cache->costs(*problem_, stage.all));
    if (stage.all.offload) offload_to_host(costs);
    return costs;
  }
  const Machine machine = within_mesh(
      stage.device != nullptr ? *problem_->machine_with(*stage.device) : *problem_->machine, stage.all.mesh);
  const Distribution within = on_stage(stage.all);
  const CodedParts coded{&problem_->codecs,
                         stage.device != nullptr ? stage.device : &problem_->cluster->device};
  WEFT_TRY(costs, parts_->micro_batch(within, machine, coded));
  const bool accumulates = stage.all.micro_batches > 1 || problem_->cluster->stack.f32_gradients > 0;
  WEFT_TRY(ends, parts_->end_of_step(within, machine, accumulates, coded));
  add_end_of_step(costs, ends);
  if (stage.all.offload) offload_to_host(costs);
  return costs;
}

void StageEstimator::simulate(std::span<const Distribution* const> given) {
  std::vector<std::pair<Stage, Result<PartCosts>*>> jobs;
  for (const Distribution* const one : given)
    for (Stage& stage : stages_of(*one)) {
      const auto [found, is_new] = known_.try_emplace(stage.key, user_error("it was not tried"));
      if (is_new) jobs.emplace_back(std::move(stage), &found->second);
    }
  parallel_for(jobs.size(), [&](std::size_t j) { *jobs[j].second = look_at(jobs[j].first); });
}

Result<StagedCosts> StageEstimator::costs(const Distribution& given) const {
  StagedCosts made;
  made.stack = problem_->cluster->stack;
  for (const plan::MeshAxis& axis : given.mesh.axes) made.groups += axis.ranks > 1 ? 1 : 0;
  made.recomputes_layers = given.recompute.layers;
  made.overlaps_reduce = problem_->overlaps_reduce;
  made.overlaps_gather = problem_->overlaps_gather;
  for (const std::size_t axis : distribute::axes_within_stage(given))
    if (shares_micro_batch(given.axes[axis])) made.tensor_ranks *= given.mesh.axes[axis].ranks;
  std::vector<std::string> kinds;
  const std::vector<Stage> stages = stages_of(given);
  for (const Stage& stage : stages) {
    const auto known = std::ranges::find(kinds, stage.key);
    made.of_stage.push_back(static_cast<std::size_t>(known - kinds.begin()));
    if (known != kinds.end()) continue;
    kinds.push_back(stage.key);
    WEFT_TRY(costs, known_.at(stage.key));
    made.kinds.push_back(
        {costs, problem_->room_on(stage.device), devices_.empty() ? std::string() : stage.device->name});
  }
  if (stages.size() == 1) made.of_stage.clear();
  if (!distribute::has_stage_meshes(given) && stages.size() == 1 && problem_->slice_sends.value_or(true)) {
    WEFT_TRY(links, links_of(*problem_, given));
    for (const std::size_t axis : distribute::axes_within_stage(given))
      made.slicing.push_back({given.mesh.axes[axis].ranks, links[axis]});
    made.must_slice = problem_->slice_sends.has_value();
  }
  if (distribute::has_stage_meshes(given)) {
    WEFT_TRY(links, cost::mesh_links(*problem_->cluster, given.mesh));
    made.within_bytes_per_second = slowest_that_differs(given, links);
  }
  return made;
}

}  // namespace weft::search
