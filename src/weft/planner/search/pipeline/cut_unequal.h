// weft/planner/search/pipeline/cut_unequal.h -- where parts are cut among stages whose devices differ.
//
//   v100 v100 a100     more parts for the faster device, and none that a smaller one has no room for
//
// First so that the slowest stage is as quick as can be with what fits; then a cut at a time is moved by a part as
// long as the step, as it is priced, gets quicker.
#pragma once
#include <vector>

#include "weft/planner/search/pipeline/price_in_time.h"

namespace weft::search {

// By work and room. Where nothing fits, by work alone. REQUIRES: as many parts as positions.
std::vector<std::size_t> cut_unequal(const StagedCosts& costs, const Unfolded& order);

// The best that moves of single cuts lead to; what fits goes before what does not.
std::vector<std::size_t> move_cuts(const StagedCosts& costs, const Unfolded& order,
                                   std::vector<std::size_t> cuts, const cost::MeshLink& link);

}  // namespace weft::search
