// weft/collectives/synthesis/step_bounds.h -- lower bounds by counting, without a search.
//
//   far     some chunk has more steps to go than there are
//   narrow  some devices have more chunks for the others than their links can send in all rounds. The
//           first steps, before a chunk can reach these links, and the last, when it must have passed
//           them to reach everything behind, do not count
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "weft/collectives/synthesis/step_network.h"
#include "weft/collectives/synthesis/step_problem.h"

namespace weft::synthesis {

// The longest distance that a chunk has to travel: a lower bound on the steps.
std::int32_t least_steps(const StepNetwork& network, const StepProblem& problem);

// A set of devices: `chunks` must leave it, `capacity` of them can per round.
struct StepCut {
  std::vector<std::int32_t> devices;
  std::int64_t chunks = 0;
  double capacity = 1;
  std::int32_t idle = 0;  // steps in which none of the chunks can leave, or needs to

  double rounds() const { return static_cast<double>(chunks) / capacity; }
};

// The cut that needs the most rounds; `with_idle` adds one round per idle step. Tries all sets if
// there are few devices, otherwise the balls around every device and their complements.
StepCut narrowest_cut(const StepNetwork& network, const StepProblem& problem, bool with_idle = false);

// The reason why the steps or rounds cannot suffice; empty if counting does not decide it.
std::optional<std::string> refute_by_counting(const StepNetwork& network, const StepProblem& problem,
                                              std::int32_t steps, std::int32_t rounds);

}  // namespace weft::synthesis
