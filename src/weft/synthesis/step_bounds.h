// weft/synthesis/step_bounds.h -- what can be ruled out by counting, without a search.
//
//   far     some chunk has more steps to go than there are
//   narrow  some devices have more chunks for the others than their links let out in all rounds together
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "weft/synthesis/step_network.h"
#include "weft/synthesis/step_problem.h"

namespace weft::synthesis {

// The longest way that some chunk has to go: no schedule has fewer steps.
std::int32_t least_steps(const StepNetwork& network, const StepProblem& problem);

// The narrowest set of devices: `chunks` must leave it, `capacity` can in a round.
struct StepCut {
  std::vector<std::int32_t> devices;
  std::int64_t chunks = 0;
  double capacity = 1;

  double rounds() const { return static_cast<double>(chunks) / capacity; }
};

// Over all sets of devices where there are few, else over single ones, all but one, and what is within a
// distance of one.
StepCut narrowest_cut(const StepNetwork& network, const StepProblem& problem);

// Why the steps or the rounds cannot be enough, where counting tells.
std::optional<std::string> refute_by_counting(const StepNetwork& network, const StepProblem& problem,
                                              std::int32_t steps, std::int32_t rounds);

}  // namespace weft::synthesis
