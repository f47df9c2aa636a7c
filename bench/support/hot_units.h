// bench/support/hot_units.h -- units by their share of a step's time, compared with the roofline.
//
//   roof = max(flops / best gemm, bytes / triad over as much memory as the program has)
//
// Flops are those of the plan's nodes; bytes are those of the whole values that a unit reads and
// writes. Units that do the same on the same sizes, as in the layers of a model, share a row.
// Values in cache are read faster than by the triad, so a row of a large program can exceed 100%.
#pragma once
#include <string>
#include <vector>

#include "support/training_rank.h"

namespace weft::bench {

struct HotUnit {
  std::string name;
  int count = 0;  // number of units
  double seconds = 0, flops = 0, bytes = 0;
};

struct Roof {
  double flops_per_second = 0, bytes_per_second = 0;

  double seconds(const HotUnit& unit) const;
};

// Longest first. A unit's time is its best of `steps` steps, to exclude interruptions.
std::vector<HotUnit> hot_units(TrainingRank& rank, int steps);

// Prints the `most` longest and a line for the rest.
void print_hot_units(const std::vector<HotUnit>& units, const Roof& roof, std::size_t most);

}  // namespace weft::bench
