// weft/collectives/synthesis/step_bounds.h -- what can be ruled out by counting, without a search.
//
//   far     some chunk has more steps to go than there are
//   narrow  some devices have more chunks for the others than their links let out in all rounds together, but
//           for the first steps, before a chunk has come to the links, and the last, when it must have passed
//           to come everywhere behind them
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "weft/collectives/synthesis/step_network.h"
#include "weft/collectives/synthesis/step_problem.h"

namespace weft::synthesis {

// The longest way that some chunk has to go: no schedule has fewer steps.
std::int32_t least_steps(const StepNetwork& network, const StepProblem& problem);

// A set of devices: `chunks` must leave it, `capacity` can in a round.
struct StepCut {
  std::vector<std::int32_t> devices;
  std::int64_t chunks = 0;
  double capacity = 1;
  std::int32_t idle = 0;  // steps in which none of the chunks can leave, or need

  double rounds() const { return static_cast<double>(chunks) / capacity; }
};

// The one that takes the most rounds, idle steps counted as one each where asked for. Of all sets of devices
// where there are few, else of what is within a distance of a device or beyond it.
StepCut narrowest_cut(const StepNetwork& network, const StepProblem& problem, bool with_idle = false);

// Why the steps or the rounds cannot be enough, where counting tells.
std::optional<std::string> refute_by_counting(const StepNetwork& network, const StepProblem& problem,
                                              std::int32_t steps, std::int32_t rounds);

}  // namespace weft::synthesis
