// weft/parallel/distribute/local_steps.h -- what a plan says of ranks that learn by themselves for some steps.
#pragma once
#include <cstdint>
#include <vector>

#include "weft/parallel/distribute/distribute.h"

namespace weft::distribute {

// Along which ranks have other examples: an input is sliced there by its first index.
std::vector<std::size_t> data_axes(const DistributedPlan& plan);

// The most steps between two sums of a gradient; 1: all are made in every step.
std::int64_t steps_between_sums(const plan::Graph& graph);

}  // namespace weft::distribute
