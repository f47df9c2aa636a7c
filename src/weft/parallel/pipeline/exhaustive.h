// weft/parallel/pipeline/exhaustive.h -- finds the best schedule of few passes by branch and bound.
//
// Micro-batches are identical, so each stage runs its Fs, its Bs and its Ws in order of
// micro-batch. Only the interleaving of the three on each stage is searched.
#pragma once
#include <cstdint>
#include <optional>

#include "weft/parallel/pipeline/greedy.h"

namespace weft::pipeline {

struct Exhausted {
  std::optional<Orders> orders;  // better than `to_beat`; empty: none found
  double cost = 0;
  bool complete = false;  // false: gave up after `most_steps`
};

// For a line, with separate B and W.
Exhausted exhaust(const Schedule& shape, const Network& network, const Limits& limits, double to_beat,
                  std::int64_t most_steps);

}  // namespace weft::pipeline
