// weft/collectives/synthesis/greedy_schedule.h -- one schedule, built greedily and controlled by keys.
//
// An event simulation. Whenever links are free, edges are matched with chunks. Preferred are chunks
// on their way to the farthest device that they reach this way as early as by any other path, then
// edges whose end lacks the most chunks. Links at both ends of a switch are matched by augmenting
// paths, so that none is idle unnecessarily. Keys break ties; other keys give other schedules.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "weft/collectives/synthesis/step_sat.h"
#include "weft/collectives/synthesis/time_schedule.h"

namespace weft::synthesis {

struct GreedyKeys {
  std::vector<float> chunk, edge;  // in [0, 1)
  // How much later than the best path an edge may deliver a wanted chunk, relative to the edge's
  // own time.
  double patience = 0;
  bool far_first = true;   // false: the end that lacks the most first
  bool rare_first = true;  // among equally far chunks, the one with the fewest holders
};

// Empty if the clock expires first.
std::optional<TimeSchedule> build_greedy_schedule(const StepNetwork& network, const StepProblem& problem,
                                                  const EdgeTimes& times, const GreedyKeys& keys,
                                                  const StepClock& clock);

}  // namespace weft::synthesis
