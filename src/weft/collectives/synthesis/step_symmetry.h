// weft/collectives/synthesis/step_symmetry.h -- the symmetries of a step network.
//
//   0 - 1        turn   0->1->2->3->0        a group that moves every device: turn, turn^2, turn^3
//   |   |        flip   0<->1, 3<->2
//   3 - 2
//
// A schedule that is invariant under such a group is determined by one device's chunks, which makes
// the search that much smaller. If no invariant schedule exists, others may.
#pragma once
#include <cstdint>
#include <vector>

#include "weft/collectives/synthesis/step_network.h"

namespace weft::synthesis {

// Device i maps to device[i]; edges follow their ends.
struct StepSymmetry {
  std::vector<std::int32_t> device, edge;

  friend auto operator<=>(const StepSymmetry&, const StepSymmetry&) = default;
};

// Includes the identity, which comes first.
using StepGroup = std::vector<StepSymmetry>;

StepSymmetry identity(const StepNetwork& network);

// Groups whose elements, except the identity, move every device other than `fixed` and keep `fixed`
// (-1: none). Largest first, a few of each size; the last one is the identity alone. On networks
// with very many symmetries some may be missed.
std::vector<StepGroup> step_groups(const StepNetwork& network, std::int32_t fixed);

}  // namespace weft::synthesis
