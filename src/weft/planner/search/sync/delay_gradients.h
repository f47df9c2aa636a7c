// weft/planner/search/sync/delay_gradients.h -- gradients that are applied a step later, so that their sums are hidden.
//
//   step t     | forward t | backward t |update|       the sums of what step t - 1 made begin with step t, beside its
//   wires      |==sums of t-1==|                       forward and backward pass; its update applies them
//
// What ranks made is a state of the plan (distribute/delayed.h). The first step applies nothing. Collectives of an axis
// keep the plan's order: sums that come first have the whole step, but what the forward pass exchanges waits for them,
// unless they are all-reduces at low priority; sums that come after the forward pass have the backward pass alone.
#pragma once
#include <cstdint>

#include "weft/base/result.h"
#include "weft/parallel/distribute/distribute.h"

namespace weft::search {

struct DelayedGradients {
  distribute::DistributedPlan plan;
  std::int64_t gradients = 0;
  std::int64_t bytes = 0;  // that a rank keeps of them
};

enum class DelayedSums : std::uint8_t { after_forward, first, first_at_low_priority };

// Fails where the plan sums no gradients over ranks, which is where delay_gradients fails.
Status check_delayable(const distribute::DistributedPlan& plan);

// Fails where the plan sums no gradients over ranks.
Result<DelayedGradients> delay_gradients(const distribute::DistributedPlan& plan, DelayedSums stand);

}  // namespace weft::search
