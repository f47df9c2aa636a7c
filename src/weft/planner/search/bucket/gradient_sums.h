// weft/planner/search/bucket/gradient_sums.h -- find the exchanges that sum gradients, and their parameters.
#pragma once
#include <string>
#include <vector>

#include "weft/plan/graph/graph.h"

namespace weft::search {

// By node: whether it is a sum over ranks that only updates read, directly or through sums and
// casts.
std::vector<bool> gradient_sums(const plan::Graph& graph);

// By value: the parameter whose gradient it is, between the sums and the update; empty if unknown.
std::vector<std::string> gradient_names(const plan::Graph& graph);

}  // namespace weft::search
