// weft/parallel/distribute/excuses.h -- whether what lets a plan differ from the model stands where it may.
//
//   all-reduce {every=8}    sums that only optimizers read, as gradients, along an axis that slices the batch; all sums
//                           of gradients along such axes have the same period, or ranks would part for good; and
//                           no step is skipped by such a gradient, as each rank would decide for itself
//
// A proof takes such a sum for one that is made (session/prove_plan.h says so); a loss that is not summed is wrong.
#pragma once
#include <optional>
#include <vector>

#include "weft/parallel/distribute/distribute.h"
#include "weft/parallel/distribute/promises.h"

namespace weft::distribute {

// By value: what an optimizer reads as a gradient, and what that was before it was moved, scaled, clipped, chosen or
// added to others.
std::vector<bool> gradients_of(const plan::Graph& graph);

std::optional<BrokenPromise> find_misplaced_period(const DistributedPlan& plan);

}  // namespace weft::distribute
