// weft/parallel/distribute/periodic_sums.h -- checks where periodic gradient sums may occur.
//
// Such sums make a plan differ from its model.
//
//   all-reduce {every=8}  sums that only optimizers read, as gradients, along an axis that slices
//                         the batch; all gradient sums along such axes have the same period, or
//                         ranks would diverge for good; and no such gradient decides whether a step
//                         is skipped, as ranks would decide differently
//
// A proof treats such a sum as one made in every step (session/prove_plan.h reports this). A loss
// that is not summed is an error.
#pragma once
#include <optional>
#include <vector>

#include "weft/parallel/distribute/distribute.h"
#include "weft/parallel/distribute/requirements.h"

namespace weft::distribute {

// By value: whether an optimizer reads it as a gradient, directly or after it was moved, scaled,
// clipped, selected or added to others.
std::vector<bool> gradients_of(const plan::Graph& graph);

std::optional<BrokenRequirement> find_misplaced_period(const DistributedPlan& plan);

}  // namespace weft::distribute
