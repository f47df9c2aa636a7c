// weft/parallel/pipeline/turns.h -- schedules of a v in which every stage alternates B and F.
//
//   stage 0  F0.0 F1.0 F2.0 F0.1 B0.1 F1.1 B1.1 ...     as many Fs as fit in memory until the first B
//   stage 1       F0.0 F0.1 F1.0 F1.1 B0.1 F2.0 ...     arrives; then one B and one F per round
//
// If the next pass has not arrived, a stage runs a W that delays nothing. It also runs one that
// delays the next pass once its idle time reaches its limit: that of the worst stage so far, or its
// `spare`. Idle time below that of the worst stage costs nothing, so it is best spent on not
// delaying others. The idea comes from the greedy heuristic of Qi et al., Zero bubble pipeline
// parallelism, 2024, for ZB-V.
#pragma once
#include <optional>

#include "weft/parallel/pipeline/greedy.h"

namespace weft::pipeline {

struct TurnsPolicy {
  std::vector<double> spare;                         // idle time that a stage may always have
  bool delay_forward = true, delay_backward = true;  // whether W may delay an F, or a B of chunk 0
  double patience = 1;  // a W starts if this share of it fits before the next pass
};

struct Turns {
  Orders orders;
  std::vector<double> idle;  // by stage, from its first pass on
};

// `shape`: a v of two chunks. Empty if memory does not suffice: a stage needs one forward pass of
// each chunk for itself and for each stage before it.
std::optional<Turns> take_turns(const Schedule& shape, const Network& network, const Limits& limits,
                                const TurnsPolicy& policy);

}  // namespace weft::pipeline
