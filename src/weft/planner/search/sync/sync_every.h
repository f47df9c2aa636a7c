// weft/planner/search/sync/sync_every.h -- gradients that stay where they are, and parameters that are averaged now and then.
//
//   sync_every = 8:   %28 = all-reduce %27 {axis=rank, every=8}     each rank goes on with its own gradient;
//                                                                   after 8 steps the ranks average what they
//                                                                   learned (run/parameter_averages.h)
//
// Local SGD, and DiLoCo where an outer optimizer takes the average for a gradient. Ranks that slice a batch part for
// that time, so they must hold copies of what they learn: nothing may be sharded along their axes.
#pragma once
#include <cstdint>
#include <vector>

#include "weft/base/result.h"
#include "weft/parallel/distribute/distribute.h"

namespace weft::search {

struct LocalSteps {
  distribute::DistributedPlan plan;
  std::int64_t gradients = 0;          // that stay where they are
  std::int64_t bytes = 0;              // of the parameters of a rank, which are averaged
  std::vector<std::size_t> axes = {};  // of the mesh, along which they are
};

// Fails where sync_every would: ranks that slice the batch share a parameter or state, or sum no gradients.
Status check_learns_alone(const distribute::DistributedPlan& plan);

// REQUIRES: steps > 1. Fails where no gradient is summed along an axis that slices the batch, and where parameters or
// states are sharded along one.
Result<LocalSteps> sync_every(const distribute::DistributedPlan& plan, std::int64_t steps);

}  // namespace weft::search
