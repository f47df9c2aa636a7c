// weft/parallel/distribute/local_steps.h -- ranks that update independently between averages.
#pragma once
#include <cstdint>
#include <vector>

#include "weft/parallel/distribute/distribute.h"

namespace weft::distribute {

// The axes along which ranks have different examples: some input is sliced there by its first
// index.
std::vector<std::size_t> data_axes(const DistributedPlan& plan);

// The largest period of a gradient sum in steps; 1: all gradients are summed in every step.
std::int64_t steps_between_sums(const plan::Graph& graph);

}  // namespace weft::distribute
