// weft/program/memory/recompute_greedy.h -- computes what is asked for, and drops what will be missed least.
//
// For any graph. When an F finds no room, that x goes which costs least time for its bytes and for how long it
// is not read: the rule of Kirisame et al., "Dynamic Tensor Rematerialization" (ICLR'21), except that here the
// order of the backward steps is known, and so is when each x is read next.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "weft/program/memory/recompute_model.h"

namespace weft::memory {

struct GreedyRule {
  double distance = 1;      // the power to which the time until the next reading counts
  bool with_inputs = true;  // whether what must be computed first counts with it
};

// Nothing where it does not come through with `memory`, the graph's input not counted.
std::optional<std::vector<RecomputeStep>> greedy_steps(const RecomputeModel& model, std::int64_t memory,
                                                       const GreedyRule& rule);

}  // namespace weft::memory
