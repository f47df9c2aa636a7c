// weft/parallel/pipeline/slope_orders.h -- schedules from the slopes of F and B over the stages.
//
//   stage 0  F0    F1    F2     B0 F3    B1       the slopes of F and of B: the time of a micro-batch
//   stage 1     F0    F1    F2 B0    F3 B1        per stage; steep lines hold more and wait less
//
// One micro-batch starts per period. The lines give the order of F and B on every stage. Ws are
// then inserted where a stage would be idle or where memory is short.
#pragma once
#include <array>
#include <optional>

#include "weft/parallel/pipeline/greedy.h"

namespace weft::pipeline {

struct Slopes {
  std::array<double, 2> forward{}, backward{};  // for even and odd chunks, in time units per stage
};

// The time at which each F and B begins on these lines, by pass number; Ws have none.
std::vector<double> nominal_times(const Schedule& shape, const Network& network, const Slopes& slopes,
                                  double period);

// The orders of F and B on these lines, without Ws.
Orders slope_orders(const Schedule& shape, const Network& network, const Slopes& slopes, double period);

// Inserts Ws: a stage that would be idle for `patience` of a W runs one. Empty if memory does not
// suffice.
std::optional<Orders> fill(const Network& network, const Limits& limits, const Orders& slope_orders,
                           double patience);

}  // namespace weft::pipeline
