#include "weft/planner/search/pipeline/stage_cost_cache.h"

#include <algorithm>

#include <fmt/format.h>

namespace weft::search {

using distribute::Distribution;

namespace {

// Machines of clusters whose axes have other sizes have other links.
std::string cluster_key(const PipelineProblem& problem) {
  std::string key;
  for (const cluster::Axis& axis : problem.cluster->axes) key += fmt::format("{}={} ", axis.name, axis.size);
  return key;
}

}  // namespace

OneReplica one_replica(const Distribution& within, const std::string& batch) {
  OneReplica made;
  made.within = within;
  made.within.mesh.axes.clear();
  made.within.axes.clear();
  for (std::size_t a = 0; a < within.axes.size(); ++a) {
    const distribute::AxisUse& use = within.axes[a];
    const std::int32_t ranks = within.mesh.axes[a].ranks;
    const bool only_batch = use.slice.size() == 1 && use.slice.front() == batch && !use.ring &&
                            use.shard != distribute::Shard::parameters;
    if (only_batch) {
      made.replicas *= ranks;
      continue;
    }
    made.within.mesh.axes.push_back(within.mesh.axes[a]);
    made.within.axes.push_back(use);
    made.axes.push_back(a);
  }
  return made;
}

Result<std::shared_ptr<const PartEstimator>> StageCostCache::parts(const PipelineProblem& problem,
                                                                   std::int64_t rows,
                                                                   const train::Recompute& again) {
  const std::lock_guard lock(mutex_);
  const std::pair key(rows, train::print(again));
  auto found = parts_.find(key);
  if (found == parts_.end()) {
    const auto make = [&]() -> Result<std::shared_ptr<const PartEstimator>> {
      WEFT_TRY(plan, problem.plan_of(rows));
      return std::make_shared<const PartEstimator>(*plan, again);
    };
    found = parts_.emplace(key, make()).first;
  }
  return found->second;
}

Result<PartCosts> StageCostCache::costs(const PipelineProblem& problem, const Distribution& all) {
  const train::Recompute again = problem.recomputed ? train::Recompute() : all.recompute;
  const Distribution within = on_stage(all);
  OneReplica one = one_replica(within, problem.batch);
  const std::int64_t rows = problem.rows / all.micro_batches;
  if (rows % one.replicas != 0) one = {within, 1, {}};
  const std::string where = cluster_key(problem);
  const Machine machine = within_mesh(*problem.machine, all.mesh);

  const std::string micro_key =
      fmt::format("{}: {} rows of {}; {}", where, rows / one.replicas, train::print(again),
                  print(Distribution{one.within.mesh, one.within.axes, one.within.exceptions}));
  WEFT_TRY(parts, this->parts(problem, rows / one.replicas, again));
  if (!micro_.contains(micro_key))
    micro_.emplace(micro_key, parts->micro_batch(on_stage(one.within), machine));
  WEFT_TRY(costs, micro_.at(micro_key));
  // The axes of the stage's mesh that were left out hold nothing that other ranks hold too.
  if (!one.axes.empty() || one.replicas > 1)
    for (PartCost& cost : costs) {
      std::vector<double> alike(within.axes.size());
      for (std::size_t a = 0; a < std::min(cost.alike.size(), one.axes.size()); ++a)
        alike[one.axes[a]] = cost.alike[a];
      cost.alike = std::move(alike);
    }

  const bool accumulates = all.micro_batches > 1;
  const std::string end_key = fmt::format("{}: {}; {}", where, accumulates ? "sums" : "one pass",
                                          print(Distribution{within.mesh, within.axes, within.exceptions}));
  WEFT_TRY(whole, this->parts(problem, problem.rows, {}));
  if (!ends_.contains(end_key)) ends_.emplace(end_key, whole->end_of_step(within, machine, accumulates));
  WEFT_TRY(ends, ends_.at(end_key));
  if (ends.size() != costs.size()) {
    WEFT_TRY(own, parts->end_of_step(within, machine, accumulates));
    ends = std::move(own);
  }
  add_end_of_step(costs, ends);
  return costs;
}

}  // namespace weft::search
