// weft/collectives/synthesis/time_turn.h -- one schedule in time, made greedily and steered by keys.
//
// Time goes forward from event to event. Whenever cables are free, edges are matched with chunks: first those
// that lead on to the farthest device that gets the chunk by this way as early as by any other, then those
// whose end lacks the most. Cables at both ends of a switch are matched by augmenting ways, so that none is idle
// that need not be. Keys decide among equals; with other keys, another schedule.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "weft/collectives/synthesis/step_sat.h"
#include "weft/collectives/synthesis/time_schedule.h"

namespace weft::synthesis {

struct TurnKeys {
  std::vector<float> chunk, edge;  // in [0, 1)
  // How much later than by the best way, in parts of its own time, an edge may bring what its end wants.
  double patience = 0;
  bool far_first = true;   // else the end that lacks the most
  bool rare_first = true;  // of chunks that go as far, the one that the fewest have
};

// Nothing where the clock is over first.
std::optional<TimeSchedule> play_turn(const StepNetwork& network, const StepProblem& problem,
                                      const EdgeTimes& times, const TurnKeys& keys, const StepClock& clock);

}  // namespace weft::synthesis
