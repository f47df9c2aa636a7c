// weft/planner/search/pipeline/choose_layers.h -- choose the layers to recompute on each stage.
//
//   1F1B, 4 stages      stage 0 holds 4 micro-batches: recomputes 3 of its 8 layers
//                       stage 1 holds 3:               recomputes 1 layer
//                       stages 2 and 3:                none
//
// Full recomputation costs a third of the forward pass on every stage, though only the first stages
// are short of memory. So stages are cut and layers chosen together, to minimize the time of the
// slowest stage within memory. Choosing the layers of a run is a knapsack problem: seconds spent
// for bytes freed (partition/choices.h).
#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "weft/planner/search/pipeline/estimate_pipeline.h"

namespace weft::search {

struct ChosenLayers {
  std::vector<std::string> layers;  // names of the recomputed layers
  PartCosts costs;                  // with these layers recomputed
  std::vector<std::size_t> cuts;
};

// `kept` and `again`: costs of the parts without recomputation and with all layers recomputed.
// `layers`: the layer of each part; empty if it is in no layer. Returns nothing if no layer needs
// recomputing or if nothing fits.
std::optional<ChosenLayers> choose_layers(const PartCosts& kept, const PartCosts& again,
                                          std::span<const std::string> layers, const Unfolded& order,
                                          double room);

}  // namespace weft::search
