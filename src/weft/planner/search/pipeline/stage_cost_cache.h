// weft/planner/search/pipeline/stage_cost_cache.h -- costs of parts shared by estimates of similar plans.
//
//   TP 8, PP 16, DP 8     micro-batch of one example on 8 ranks ─┐ simulated once for both
//   TP 8, PP 8, DP 16     the same                              ─┘
//                         end of a step with ZeRO-1 over 16 ranks: once per mesh, for any schedule
//
// The cost of a micro-batch depends on its rows and on the axes that slice the model, not on how
// many replicas there are, unless parameters are sharded. The cost of the end of a step depends on
// the mesh alone. An estimate of hundreds of configurations therefore needs a few dozen simulations.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "weft/planner/search/pipeline/choose_pipeline.h"
#include "weft/planner/search/pipeline/schedule_cache.h"

namespace weft::search {

// One model, batch and machine type; clusters may differ in the sizes of their axes. Thread-safe.
class StageCostCache {
 public:
  // The parts of the plan with these rows. REQUIRES: the problem's plans outlive this.
  Result<std::shared_ptr<const PartEstimator>> parts(const PipelineProblem& problem, std::int64_t rows,
                                                     const train::Recompute& again);
  // Micro-batch and end-of-step costs of a stage: `all` is its distribution, with stage axis and
  // micro-batches. Nothing if the plans differ in their parts.
  Result<PartCosts> costs(const PipelineProblem& problem, const distribute::Distribution& all);

  ScheduleCache& schedules() { return schedules_; }

 private:
  std::mutex mutex_;
  ScheduleCache schedules_;
  std::map<std::pair<std::int64_t, std::string>, Result<std::shared_ptr<const PartEstimator>>> parts_;
  std::map<std::string, Result<PartCosts>> micro_, ends_;
};

// A stage's distribution restricted to one replica, and the number of replicas: without the axes
// along which only the batch is sliced and parameters are whole.
struct OneReplica {
  distribute::Distribution within;
  std::int64_t replicas = 1;
  std::vector<std::size_t> axes = {};  // of the stage's mesh, by axis of `within`
};
OneReplica one_replica(const distribute::Distribution& within, const std::string& batch);

}  // namespace weft::search
