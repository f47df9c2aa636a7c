// weft/planner/search/pipeline/cut_layers.h -- cut parts into stages between whole layers, as launchers do.
//
//   embed | block.0 | block.1 | .. | block.5 | head      layers 3, 3:  embed .. block.2 | block.3 .. head
//                                                        layers 4, 2:  embed .. block.3 | block.4 .. head
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace weft::search {

// The number of layers. `layers`: by part, as PartEstimator::layer_names().
std::int64_t count_layers(std::span<const std::string> layers);

// The end of each run of parts. Parts before the first layer are in the first run; other parts
// outside layers are with the layer before them. Nothing if the numbers do not add up to all
// layers, or if a run would be empty.
std::optional<std::vector<std::size_t>> cut_layers(std::span<const std::string> layers,
                                                   std::span<const std::int64_t> of_runs);

// The end of each run, for runs of about equal work; parts outside layers may have runs of their own. Nothing if there
// are fewer layers and such parts than `positions`.
std::optional<std::vector<std::size_t>> cut_between_layers(std::span<const std::string> layers,
                                                           std::span<const double> work,
                                                           std::size_t positions);

}  // namespace weft::search
