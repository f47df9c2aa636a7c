// weft/planner/search/distribution/fold.h -- fold repeated layers of a plan to estimate its cost.
//
//   layers 0 1 2 3 .. 94 95          layers 0 1 94 95: the backward pass of layer 1 now reads from
//          └─ fold to 4 ─┘           layer 94 what it read from layer 2
//
// Layers in the middle of a REPEAT are alike, so each adds the same amount to the cost of a step.
// Two folded plans determine that amount, and so the time and memory for any number of layers.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "weft/plan/graph/graph.h"

namespace weft::search {

// Which REPEATs to fold: the longest, or all with the same number of iterations, such as the two
// towers of a model. Layers with the same number then count as one.
enum class Folded : std::uint8_t { longest, all };

// Iterations of the plan's longest REPEAT with equal layers; 0 if there is none.
std::int64_t repeated_layers(const plan::Graph& graph, Folded folded = Folded::longest);

// By node: its iteration of that REPEAT, or -1. Also for distributed plans.
std::vector<std::int64_t> layers_of_nodes(const plan::Graph& graph, Folded folded = Folded::longest);

// The plan with the first and last of these iterations, `layers` in all. Nothing if that is
// impossible: with fewer than 4, with no fewer than there are, or if layers read from others than
// their neighbours.
std::optional<plan::Graph> fold(const plan::Graph& graph, std::int64_t layers,
                                Folded folded = Folded::longest);

}  // namespace weft::search
