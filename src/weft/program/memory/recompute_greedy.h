// weft/program/memory/recompute_greedy.h -- computes on demand, and evicts the cheapest values.
//
// For any graph. If memory is full, it drops the x with the least recomputation time per byte and
// per time until its next use. This is the rule of Kirisame et al., "Dynamic Tensor
// Rematerialization" (ICLR'21), except that the order of the backward steps, and thus the next use
// of each x, is known here.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "weft/program/memory/recompute_model.h"

namespace weft::memory {

struct GreedyRule {
  double distance = 1;      // exponent of the time until the next use
  bool with_inputs = true;  // whether to count missing inputs that must be recomputed first
};

// Empty if it fails with `memory`, which excludes the graph's input.
std::optional<std::vector<RecomputeStep>> greedy_steps(const RecomputeModel& model, std::int64_t memory,
                                                       const GreedyRule& rule);

}  // namespace weft::memory
