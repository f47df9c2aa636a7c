// weft/planner/step/what_fits.h -- what to change so that a plan fits. Nothing is said that was not planned.
//
//   b = 16 fits, or a memory_limit of 902 MiB
//   8 of node fit, 64 devices in all
#pragma once
#include <functional>
#include <string>

#include "weft/planner/search/distribution/choose_distribution.h"
#include "weft/planner/statement/prepare.h"

namespace weft::planner {

// Whether a plan that fits is found for these.
using Fits =
    std::function<bool(const Settings& settings, const cluster::Cluster& target, const plan::Graph& graph)>;

// Empty where nothing that was tried fits.
std::string what_fits(const Knowledge& state, const Prepared& prepared, const search::TooLarge& large,
                      const Fits& fits);

}  // namespace weft::planner
