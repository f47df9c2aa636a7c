// weft/planner/search/pipeline/stage_pricer.h -- what stages cost by their devices and their meshes, each simulated once.
//
//   gpu=8: slice h, f                         all stages of one kind: two programs
//   gpu=8: slice h, f, in stage 3 slice b     of two: four, and of any other stages in place of 3 no more
//
// It prices distributions that differ in their meshes alone: rows, schedule and what is done again are those of one.
#pragma once
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "weft/base/result.h"
#include "weft/planner/search/pipeline/choose_in_time.h"
#include "weft/planner/search/pipeline/price_in_time.h"

namespace weft::search {

// What carries messages between stages.
Result<cost::MeshLink> wire_of(const InTimeProblem& problem, const distribute::Distribution& given);

class StagePricer {
 public:
  // `micro_batches`: that a rank takes. `device`: of all stages; null: as the cluster has them. Fails where it is no
  // distribution of the cluster, has no such schedule, or more stages than the model has parts. REQUIRES: the problem
  // outlives it.
  static Result<StagePricer> of(const InTimeProblem& problem, const distribute::Distribution& given,
                                std::int64_t micro_batches, const cluster::Device* device);

  const PricedParts& parts() const { return *parts_; }
  const TimeShape& shape() const { return shape_; }
  const Unfolded& order() const { return order_; }

  // Looks at what has not been looked at yet, at once.
  void simulate(std::span<const distribute::Distribution* const> given);
  // REQUIRES: it was simulated.
  Result<StagedCosts> costs(const distribute::Distribution& given) const;

 private:
  // A stage: where it runs and how it is cut.
  struct Stage {
    distribute::Distribution all;  // as if all stages were like it
    const cluster::Device* device = nullptr;
    std::string key;
  };
  std::vector<Stage> stages_of(const distribute::Distribution& given) const;
  Result<PartCosts> look_at(const Stage& stage) const;

  const InTimeProblem* problem_ = nullptr;
  const cluster::Device* device_ = nullptr;
  TimeShape shape_;
  Unfolded order_;
  std::shared_ptr<const PricedParts> parts_;
  std::vector<cluster::Device> devices_;  // by stage, where they differ
  std::map<std::string, Result<PartCosts>> known_;
};

}  // namespace weft::search
