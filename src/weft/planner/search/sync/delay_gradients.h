// weft/planner/search/sync/delay_gradients.h -- apply gradients one step later to hide their sums.
//
//   step t     | forward t | backward t |update|       the gradients of step t - 1 are summed during
//   wires      |==sums of t-1==|                       step t, whose update applies them
//
// Unsummed gradients are states of the plan (distribute/delayed.h). The first step applies nothing.
// Collectives of an axis keep the plan's order. Sums at the start can overlap with the whole step,
// but delay the exchanges of the forward pass unless they are low-priority all-reduces. Sums after
// the forward pass can overlap only with the backward pass.
#pragma once
#include <cstdint>

#include "weft/base/result.h"
#include "weft/parallel/distribute/distribute.h"

namespace weft::search {

struct DelayedGradients {
  distribute::DistributedPlan plan;
  std::int64_t gradients = 0;
  std::int64_t bytes = 0;  // of kept gradients per rank
};

enum class DelayedSums : std::uint8_t { after_forward, first, first_at_low_priority };

// Fails if the plan sums no gradients over ranks, as does delay_gradients.
Status check_delayable(const distribute::DistributedPlan& plan);

// Fails if the plan sums no gradients over ranks.
Result<DelayedGradients> delay_gradients(const distribute::DistributedPlan& plan, DelayedSums stand);

}  // namespace weft::search
