// weft/runtime/run/step_times.h -- time per rank: tells slow ranks from waiting ones.
//
//            computes   exchanges
//   rank 0   1.0 ms     4.1 ms       waits for rank 1
//   rank 1   4.0 ms     0.2 ms       arrives last: this is the time of the exchange itself
//
// So the time of an exchange is the least of its group's times, and the step is as fast as the rank
// that computes longest.
#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include "weft/plan/graph/layout.h"
#include "weft/program/tasks/program.h"
#include "weft/program/tasks/timeline.h"

namespace weft::run {

// Times of one step on one rank.
struct StepTimes {
  double compute = 0;             // sum over compute tasks
  std::vector<double> exchanges;  // one per exchange, in program order
};
StepTimes step_times(const program::Program& program, const program::Timeline& timeline);

// Times of a typical step: medians over several steps of all ranks.
struct RankSpeeds {
  std::vector<double> compute;   // by rank
  std::vector<double> exchange;  // by mesh axis: sum over its exchanges, without waiting
};

// `steps[rank]`: that rank's times, for the same number of steps on every rank. `program` is that
// of any rank: all have the same exchanges.
RankSpeeds speeds_of(const program::Program& program, const plan::Mesh& mesh,
                     std::span<const std::vector<StepTimes>> steps);

// Serialization, with `exchanges` per step.
std::vector<std::byte> to_bytes(std::span<const StepTimes> steps);
std::vector<StepTimes> steps_from(std::span<const std::byte> bytes, std::size_t exchanges);

}  // namespace weft::run
