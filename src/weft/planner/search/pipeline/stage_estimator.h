// weft/planner/search/pipeline/stage_estimator.h -- costs of stages by device and mesh, each simulated once.
//
//   gpu=8: slice h, f                         all stages of one kind: two programs
//   gpu=8: slice h, f, in stage 3 slice b     two kinds: four programs, also for other stages than 3
//
// It estimates distributions that differ only in their meshes: rows, schedule and recomputation are
// the same.
#pragma once
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "weft/base/result.h"
#include "weft/planner/search/pipeline/choose_pipeline.h"
#include "weft/planner/search/pipeline/estimate_pipeline.h"

namespace weft::search {

// The link between stages.
Result<cost::MeshLink> wire_of(const PipelineProblem& problem, const distribute::Distribution& given);

class StageEstimator {
 public:
  // `micro_batches`: per rank. `device`: for all stages; null: the cluster's own. Fails if `given`
  // is not a distribution of the cluster, if its schedule is unknown, or if it has more stages than
  // the model has parts. REQUIRES: the problem outlives it.
  static Result<StageEstimator> of(const PipelineProblem& problem, const distribute::Distribution& given,
                                   std::int64_t micro_batches, const cluster::Device* device);

  const PartEstimator& parts() const { return *parts_; }
  const TimeShape& shape() const { return shape_; }
  const Unfolded& order() const { return *order_; }

  // Simulates, in parallel, the stages that have no costs yet.
  void simulate(std::span<const distribute::Distribution* const> given);
  // REQUIRES: `given` was simulated.
  Result<StagedCosts> costs(const distribute::Distribution& given) const;

 private:
  // A stage: its device and its distribution.
  struct Stage {
    distribute::Distribution all;  // as if all stages were like this one
    const cluster::Device* device = nullptr;
    std::string key;
  };
  std::vector<Stage> stages_of(const distribute::Distribution& given) const;
  Result<PartCosts> look_at(const Stage& stage) const;
  // Mixed clusters, codecs and unequal replicas are simulated for each estimate.
  bool uses_cache() const;

  const PipelineProblem* problem_ = nullptr;
  const cluster::Device* device_ = nullptr;
  TimeShape shape_;
  std::shared_ptr<const Unfolded> order_;
  std::shared_ptr<const PartEstimator> parts_;
  std::vector<cluster::Device> devices_;  // by stage, in a mixed cluster
  std::map<std::string, Result<PartCosts>> known_;
};

}  // namespace weft::search
