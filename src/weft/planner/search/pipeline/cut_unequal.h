// weft/planner/search/pipeline/cut_unequal.h -- where stages are cut: by what a part takes on each, and by what it holds.
//
//   work     2 2 2 2 2 2    slow | fast    2 | 4 parts
//   memory   one micro-batch more is in flight with each stage nearer to the first: that has fewer parts
#pragma once
#include <optional>
#include <vector>

#include "weft/planner/search/pipeline/price_in_time.h"

namespace weft::search {

// By what each part takes there and holds; nothing where no cut fits so. A stage with chunks has as much room for each.
std::optional<std::vector<std::size_t>> cut_within_room(const StagedCosts& costs, const Unfolded& order);

// By what parts take alone where that fits, or where nothing does; else the same.
std::vector<std::size_t> cut_unequal(const StagedCosts& costs, const Unfolded& order);

// Moves single cuts, and pairs of neighbours, for as long as the step gets quicker by that, or what does not fit smaller.
std::vector<std::size_t> move_cuts(const StagedCosts& costs, const Unfolded& order,
                                   std::vector<std::size_t> cuts, const cost::MeshLink& link);

}  // namespace weft::search
