// weft/planner/search/bucket/gradient_sums.h -- which exchanges sum gradients, and of which parameter.
#pragma once
#include <string>
#include <vector>

#include "weft/plan/graph/graph.h"

namespace weft::search {

// By node: whether it sums over ranks what nobody but updates reads, or sums and casts that only updates read.
std::vector<bool> gradient_sums(const plan::Graph& graph);

// By value: the parameter that it is a gradient of, on its way from the sums to the update; empty: none is known.
std::vector<std::string> gradient_names(const plan::Graph& graph);

}  // namespace weft::search
