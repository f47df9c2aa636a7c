// weft/collectives/synthesis/step_symmetry.h -- in which ways devices can change places without the network noticing.
//
//   0 - 1        turn   0->1->2->3->0        a group that moves every device: turn, turn^2, turn^3
//   |   |        flip   0<->1, 3<->2
//   3 - 2
//
// A schedule that stays itself under such a group is settled by what one device's chunks do, which makes the
// search for one that much smaller. That there is no such schedule says nothing about others.
#pragma once
#include <cstdint>
#include <vector>

#include "weft/collectives/synthesis/step_network.h"

namespace weft::synthesis {

// image[i] is where i goes; edges go where their ends go.
struct StepSymmetry {
  std::vector<std::int32_t> device, edge;

  friend auto operator<=>(const StepSymmetry&, const StepSymmetry&) = default;
};

// With the identity, which comes first.
using StepGroup = std::vector<StepSymmetry>;

StepSymmetry identity(const StepNetwork& network);

// Groups in which all but the identity move every device other than `fixed`, which stays (-1: none), the
// largest first and a few of each size; the last one is the identity alone. Some may be missed on networks
// of very many symmetries.
std::vector<StepGroup> step_groups(const StepNetwork& network, std::int32_t fixed);

}  // namespace weft::synthesis
