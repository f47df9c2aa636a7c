// weft/planner/search/sync/sync_every.h -- local steps with periodic parameter averaging.
//
//   sync_every = 8:   %28 = all-reduce %27 {axis=rank, every=8}     each rank applies its own gradient;
//                                                                   every 8 steps parameters are
//                                                                   averaged (run/parameter_averages.h)
//
// This is local SGD, or DiLoCo if an outer optimizer uses the average as a gradient. Ranks that
// slice the batch diverge between averages, so they must hold full copies of their parameters:
// nothing may be sharded along their axes.
#pragma once
#include <cstdint>
#include <vector>

#include "weft/base/result.h"
#include "weft/parallel/distribute/distribute.h"

namespace weft::search {

struct LocalSteps {
  distribute::DistributedPlan plan;
  std::int64_t gradients = 0;          // that are not summed
  std::int64_t bytes = 0;              // of averaged parameters per rank
  std::vector<std::size_t> axes = {};  // mesh axes to average along
};

// Fails like sync_every: if ranks that slice the batch shard a parameter or state, or sum no
// gradients.
Status check_learns_alone(const distribute::DistributedPlan& plan);

// REQUIRES: steps > 1. Fails if no gradient is summed along an axis that slices the batch, or if
// parameters or states are sharded along one.
Result<LocalSteps> sync_every(const distribute::DistributedPlan& plan, std::int64_t steps);

}  // namespace weft::search
