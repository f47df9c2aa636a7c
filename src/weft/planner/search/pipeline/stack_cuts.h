// weft/planner/search/pipeline/stack_cuts.h -- how a stack deals a model's layers to pipeline stages.
//
//   embed | 8 layers | head    4 stages, equal_layers: embed 2 | 2 | 2 | 2 head
//
// Weft cuts stages that take equal time. Megatron does not measure them: each stage gets the same number of layers,
// with the embedding on the first and the loss on the last.
#pragma once
#include <cstddef>
#include <optional>
#include <vector>

#include "weft/planner/search/pipeline/estimate_pipeline.h"

namespace weft::search {

// The end of each run of parts. Nothing if stages are cut by time: the stack does not say otherwise, or `positions` do
// not divide the layers.
std::optional<std::vector<std::size_t>> cuts_of_stack(const cluster::Stack& stack, const PartCosts& costs,
                                                      std::size_t positions);

}  // namespace weft::search
