// weft/planner/step/what_fits.h -- suggest changes that make a plan fit. Each suggestion was planned.
//
//   b = 16 fits, or a memory_limit of 902 MiB
//   8 nodes of dgx fit, 64 devices in all
#pragma once
#include <functional>
#include <string>

#include "weft/planner/search/distribution/choose_distribution.h"
#include "weft/planner/statement/prepare.h"

namespace weft::planner {

// Whether a search with these arguments finds a plan that fits.
using Fits =
    std::function<bool(const Settings& settings, const cluster::Cluster& target, const plan::Graph& graph)>;

// Empty if nothing that was tried fits.
std::string what_fits(const Knowledge& state, const Prepared& prepared, const search::TooLarge& large,
                      const Fits& fits);

}  // namespace weft::planner
