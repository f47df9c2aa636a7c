// weft/planner/search/pipeline/choose_layers.h -- which layers do their forward pass again, stage by stage.
//
//   1F1B, 4 stages      stage 0 holds 4 micro-batches: 3 of its 8 layers again
//                       stage 1 holds 3:               1 layer again
//                       stages 2 and 3:                none
//
// To do all of it again costs a third of the forward pass everywhere, though the first stages alone are short of
// memory. So stages are cut, and layers chosen, together: the slowest stage is as quick as can be with what fits. Which
// layers of a run to do again is a knapsack (partition/choices.h): the seconds they take for the bytes they free.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "weft/planner/search/pipeline/price_in_time.h"

namespace weft::search {

struct ChosenLayers {
  std::vector<std::string> layers;  // by name: those that do it again
  PartCosts costs;                  // with these
  std::vector<std::size_t> cuts;
};

// `kept`, `again`: what parts cost as they are, and where all layers do their forward pass again. `layers`: by part, the
// layer that it is of; empty where it is of none. Nothing where all can be kept, and where nothing fits.
std::optional<ChosenLayers> choose_layers(const PartCosts& kept, const PartCosts& again,
                                          std::span<const std::string> layers, const Unfolded& order,
                                          double room);

}  // namespace weft::search
