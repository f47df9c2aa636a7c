// weft/parallel/pipeline/stage_boundaries.h -- stage boundaries: values sent for every micro-batch.
//
//   stage 0   F0 ──rows of block.1────▶ stage 1        in one direction in forward passes,
//             B0 ◀──their gradient───── stage 1        in the other in backward passes
//
// Excludes gradients that stages accumulate before sending, and values sent once per step.
#pragma once
#include <vector>

#include "weft/base/result.h"
#include "weft/parallel/distribute/distribute.h"
#include "weft/plan/graph/graph.h"

namespace weft::pipeline {

struct BoundaryValue {
  plan::ValueId value;                // made for every micro-batch, sliced along the batch
  std::vector<plan::NodeId> readers;  // on other stages than its producer for at least one micro-batch
};

// In the order of their producers. REQUIRES: plan.time is set.
Result<std::vector<BoundaryValue>> boundary_values(const distribute::DistributedPlan& plan);

}  // namespace weft::pipeline
