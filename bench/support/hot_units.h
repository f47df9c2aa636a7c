// bench/support/hot_units.h -- where a step's time goes, and how near each unit is to the roof.
//
//   roof = max(flops / best gemm, bytes / triad over as much memory as the program has)
//
// Flops are those of the plan's nodes, bytes those of the whole values that a unit reads and writes.
// Units that do the same on the same sizes, as in the layers of a model, are one row. What still lies
// in a cache comes faster than the triad, so a row of a large program can pass 100%.
#pragma once
#include <string>
#include <vector>

#include "support/training_rank.h"

namespace weft::bench {

struct HotUnit {
  std::string name;
  int count = 0;  // units
  double seconds = 0, flops = 0, bytes = 0;
};

struct Roof {
  double flops_per_second = 0, bytes_per_second = 0;

  double seconds(const HotUnit& unit) const;
};

// The costliest first. Each unit's time is its best of `steps` steps: one that was interrupted says nothing.
std::vector<HotUnit> hot_units(TrainingRank& rank, int steps);

// The `most` costliest and a line for the rest.
void print_hot_units(const std::vector<HotUnit>& units, const Roof& roof, std::size_t most);

}  // namespace weft::bench
