// weft/parallel/pipeline/skeleton.h -- schedules from slopes: F and B as straight lines over the stages, W in between.
//
//   stage 0  F0    F1    F2     B0 F3    B1       slopes of F and of B say how long a micro-batch takes from a
//   stage 1     F0    F1    F2 B0    F3 B1        stage to the next; steep ones hold more and wait less
//
// One micro-batch begins each period. The lines give the order of F and B on every stage; Ws are then put where a
// stage would be idle, or where memory is short.
#pragma once
#include <array>
#include <optional>

#include "weft/parallel/pipeline/greedy.h"

namespace weft::pipeline {

struct Slopes {
  std::array<double, 2> forward{}, backward{};  // of even and of odd chunks, in the times' unit a stage
};

// When each F and B would begin along these lines, by its number; Ws have none.
std::vector<double> nominal_times(const Schedule& shape, const Network& network, const Slopes& slopes,
                                  double period);

// The orders of F and B along these lines, without Ws.
Orders skeleton(const Schedule& shape, const Network& network, const Slopes& slopes, double period);

// Puts Ws between: one that would be idle for `patience` of a W does one. None where memory does not suffice.
std::optional<Orders> fill(const Network& network, const Limits& limits, const Orders& skeleton,
                           double patience);

}  // namespace weft::pipeline
