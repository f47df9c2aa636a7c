// weft/parallel/pipeline/exhaustive.h -- the best schedule of few passes, by trying all that might be better.
//
// Micro-batches are alike, so each stage does its Fs, its Bs and its Ws in their order; what is left to choose is how
// the three are mixed on each stage.
#pragma once
#include <cstdint>
#include <optional>

#include "weft/parallel/pipeline/greedy.h"

namespace weft::pipeline {

struct Exhausted {
  std::optional<Orders> orders;  // better than what was to be beaten; none: there is none
  double cost = 0;
  bool complete = false;  // false: gave up after `most_steps`
};

// Of a line, with B and W apart.
Exhausted exhaust(const Schedule& shape, const Network& network, const Limits& limits, double to_beat,
                  std::int64_t most_steps);

}  // namespace weft::pipeline
