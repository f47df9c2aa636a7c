// weft/planner/search/distribution/fold.h -- a plan with fewer of its repeated layers, to learn what the whole would cost.
//
//   layers 0 1 2 3 .. 94 95          layers 0 1 94 95: the backward pass of layer 1 now reads what that of
//          └─ fold to 4 ─┘           layer 94 makes, as it read what that of layer 2 made
//
// Layers in the middle of a REPEAT are alike, so what a step takes grows by the same amount with each of
// them: two folds tell the amount, and with it the time and memory of any number of layers.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "weft/plan/graph/graph.h"

namespace weft::search {

// Which REPEATs are made shorter: the longest, or every one that has as many iterations as that, such as the two
// towers of a model. Their layers of one number count as one.
enum class Folded : std::uint8_t { longest, all };

// The iterations of the plan's longest REPEAT whose layers are alike; 0 when there is none.
std::int64_t repeated_layers(const plan::Graph& graph, Folded folded = Folded::longest);

// By node: the iteration of that REPEAT which it belongs to, or -1. Also of plans on a mesh.
std::vector<std::int64_t> layers_of_nodes(const plan::Graph& graph, Folded folded = Folded::longest);

// The plan with `layers` of those iterations, the first and the last ones; nothing where that is not
// possible: fewer than 4, or not fewer than there are, or layers that read farther than from their
// neighbours.
std::optional<plan::Graph> fold(const plan::Graph& graph, std::int64_t layers,
                                Folded folded = Folded::longest);

}  // namespace weft::search
