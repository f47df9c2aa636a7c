// weft/planner/search/pipeline/cut_unequal.h -- cut parts into unequal stages, by time and memory.
//
//   work     2 2 2 2 2 2    slow | fast    2 | 4 parts
//   memory   earlier stages have more micro-batches in flight, so they get fewer parts
#pragma once
#include <optional>
#include <vector>

#include "weft/planner/search/pipeline/estimate_pipeline.h"

namespace weft::search {

// The cuts of the costs' stack, if it decides them: equal numbers of layers. Then the functions below keep them.
std::optional<std::vector<std::size_t>> stack_cuts(const StagedCosts& costs, const Unfolded& order);

// Cuts by work under a memory limit per stage. Nothing if no cut fits. Chunks of a stage share its
// memory equally.
std::optional<std::vector<std::size_t>> cut_within_room(const StagedCosts& costs, const Unfolded& order);

// Cuts by work alone if that fits or if nothing does, else within memory.
std::vector<std::size_t> cut_unequal(const StagedCosts& costs, const Unfolded& order);

// Local search: moves single cuts and neighbouring pairs while that reduces the step time, or the
// peak memory of a plan that does not fit.
std::vector<std::size_t> move_cuts(const StagedCosts& costs, const Unfolded& order,
                                   std::vector<std::size_t> cuts, const cost::MeshLink& link);

}  // namespace weft::search
