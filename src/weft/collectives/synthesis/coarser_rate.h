// weft/collectives/synthesis/coarser_rate.h -- fewer trees that carry nearly as much.
//
//   every root sends 83 units in 15 turns: 83 trees each. With links of floor(u * capacity), 5 trees each
//   take hardly longer than the optimum
//
// Chunks are shared out among trees, so their number is what a program has to bear.
#pragma once
#include <cstdint>
#include <vector>

#include "weft/collectives/synthesis/deadline.h"
#include "weft/collectives/synthesis/optimum.h"
#include "weft/collectives/synthesis/wires.h"

namespace weft::synthesis {

struct CoarserRate {
  Wires wires;            // whose unit stands for what a tree carries
  Ratio rate;             // of them
  double efficiency = 1;  // of the optimum
};

// As they are where each root has `most` trees or fewer; else the fewest trees that reach 0.99 of the optimum,
// or the best of those tried.
CoarserRate coarser_rate(const Wires& wires, const std::vector<std::int32_t>& roots, Ratio rate, Amount most,
                         const Deadline& deadline = {});

}  // namespace weft::synthesis
