// weft/planner/search/pipeline/cut_layers.h -- cut parts into stages between whole layers, as launchers do.
//
//   embed | layer 1 | layer 2 | .. | layer 6 | head      layers 3, 3:  embed .. layer 3 | layer 4 .. head
//                                                        layers 4, 2:  embed .. layer 4 | layer 5 .. head
//
// Weft's own plans may cut a layer in two.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "weft/planner/search/pipeline/part_costs.h"

namespace weft::search {

// By part: the number of its layer, from 1 on; 0 outside layers. Parts of one layer are adjacent.
std::vector<std::int32_t> layers_of_parts(const PartCosts& costs);
std::int64_t count_layers(std::span<const std::int32_t> layers);

// The end of each run of parts, with so many layers each. Parts before the first layer are in the first run; other
// parts outside layers are with the layer before them. Nothing if the numbers do not add up to all layers, or if a run
// would be empty.
std::optional<std::vector<std::size_t>> cut_layers(std::span<const std::int32_t> layers,
                                                   std::span<const std::int64_t> of_runs);

// The same for equal numbers of layers. Nothing if they do not divide.
std::optional<std::vector<std::size_t>> cut_equal_layers(std::span<const std::int32_t> layers,
                                                         std::size_t positions);

// The end of each run, for runs of about equal work; parts outside layers may have runs of their own. Nothing if there
// are fewer layers and such parts than `positions`.
std::optional<std::vector<std::size_t>> cut_between_layers(std::span<const std::int32_t> layers,
                                                           std::span<const double> work,
                                                           std::size_t positions);

}  // namespace weft::search
