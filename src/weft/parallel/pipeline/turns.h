// weft/parallel/pipeline/turns.h -- schedules of a v in which B and F take turns on every stage.
//
//   stage 0  F0.0 F1.0 F2.0 F0.1 B0.1 F1.1 B1.1 ...     first as many Fs as there is room for before the first B
//   stage 1       F0.0 F0.1 F1.0 F1.1 B0.1 F2.0 ...     arrives; then one B and one F a round
//
// When what is next has not arrived, a stage does a W if that delays nothing. It also does one that delays what
// is next once it has been idle for as long as it may: as long as the worst of all stages so far, or its `spare`.
// Idle time below the worst stage's costs nothing, so it is best spent on not keeping others waiting. The idea is
// that of the greedy heuristic of Qi et al., Zero bubble pipeline parallelism, 2024, for ZB-V.
#pragma once
#include <optional>

#include "weft/parallel/pipeline/greedy.h"

namespace weft::pipeline {

struct TurnsPolicy {
  std::vector<double> spare;  // idle time that each stage may have whatever the others have
  bool delay_forward = true, delay_backward = true;  // may a W delay an F, or a B of chunk 0
  double patience = 1;  // a W is begun when this share of it fits before what is next
};

struct Turns {
  Orders orders;
  std::vector<double> idle;  // of each stage, from its first pass on
};

// `shape` is a v of two chunks. None where a stage cannot hold as much as the turns need, which is a forward pass
// of each chunk for itself and each stage before it.
std::optional<Turns> take_turns(const Schedule& shape, const Network& network, const Limits& limits,
                                const TurnsPolicy& policy);

}  // namespace weft::pipeline
