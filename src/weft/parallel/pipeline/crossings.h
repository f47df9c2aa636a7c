// weft/parallel/pipeline/crossings.h -- what goes from one stage to another with every micro-batch.
//
//   stage 0   F0 ──block.1's rows──▶ stage 1        one way in forward passes,
//             B0 ◀──their gradient── stage 1        the other way in backward passes
//
// Not of these: gradients that stages add up before they send them, and what is sent once a step.
#pragma once
#include <vector>

#include "weft/base/result.h"
#include "weft/parallel/distribute/distribute.h"
#include "weft/plan/graph/graph.h"

namespace weft::pipeline {

struct Crossing {
  plan::ValueId value;                // made for every micro-batch, with rows of it
  std::vector<plan::NodeId> readers;  // on other stages than its maker, of one micro-batch at least
};

// In the order of their makers. REQUIRES: the plan is in time.
Result<std::vector<Crossing>> crossings_of(const distribute::DistributedPlan& plan);

}  // namespace weft::pipeline
