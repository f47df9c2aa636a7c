// weft/runtime/run/step_times.h -- where the seconds of a step go on each rank: what tells a slow rank from one that waits.
//
//            computes   exchanges
//   rank 0   1.0 ms     4.1 ms       waits for rank 1
//   rank 1   4.0 ms     0.2 ms       the last to come: so much the exchange itself takes
//
// So what an exchange takes is the least of what the ranks of its group say, and a step is as quick as the rank
// that computes longest.
#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include "weft/plan/graph/layout.h"
#include "weft/program/tasks/program.h"
#include "weft/program/tasks/timeline.h"

namespace weft::run {

// Of a step, on one rank.
struct StepTimes {
  double compute = 0;             // of all its tasks that compute
  std::vector<double> exchanges;  // of each, in the program's order
};
StepTimes step_times(const program::Program& program, const program::Timeline& timeline);

// Of a step, as some steps of all ranks say: each is the middle one of them.
struct RankSpeeds {
  std::vector<double> compute;   // by rank
  std::vector<double> exchange;  // by mesh axis: of all exchanges along it, without waiting
};

// `steps[rank]` has what that rank took, of as many steps on every rank. `program` is that of one of them: all
// have the same exchanges.
RankSpeeds speeds_of(const program::Program& program, const plan::Mesh& mesh,
                     std::span<const std::vector<StepTimes>> steps);

// To send them, and back; `exchanges` of each step.
std::vector<std::byte> to_bytes(std::span<const StepTimes> steps);
std::vector<StepTimes> steps_from(std::span<const std::byte> bytes, std::size_t exchanges);

}  // namespace weft::run
