// weft/collectives/synthesis/coarser_rate.h -- fewer trees at nearly the optimal rate.
//
//   the optimum is 83/15 units per root: 83 trees each. With link capacities floor(u * capacity),
//   5 trees each take hardly longer than the optimum
//
// A program divides its chunks among the trees, so their number limits its size.
#pragma once
#include <cstdint>
#include <vector>

#include "weft/collectives/synthesis/deadline.h"
#include "weft/collectives/synthesis/optimum.h"
#include "weft/collectives/synthesis/wires.h"

namespace weft::synthesis {

struct CoarserRate {
  Wires wires;            // in units of one tree's rate
  Ratio rate;             // for these wires
  double efficiency = 1;  // relative to the optimum
};

// Unchanged if each root has at most `most` trees. Otherwise the fewest trees that reach 0.99 of
// the optimum, or the best found.
CoarserRate coarser_rate(const Wires& wires, const std::vector<std::int32_t>& roots, Ratio rate, Amount most,
                         const Deadline& deadline = {});

}  // namespace weft::synthesis
