// weft/collectives/synthesis/tree_schedule.h -- when the chunks of trees cross the edges of a network of devices.
//
//   the trees of a forest, in pieces that follow each other:   root 0   |p0|p1|p2|p3|
//                                                              child      |p0|p1|p2|p3|
//
// Trees carry as much as the wires allow, so that of long messages, cut finely, they are done hardly after the bound.
// Of what is ready, what is due first goes first: a piece is due a turn of all trees after the one before, and what
// leads far must leave early.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "weft/collectives/synthesis/pack_trees.h"
#include "weft/collectives/synthesis/step_search.h"
#include "weft/collectives/synthesis/time_schedule.h"

namespace weft::synthesis {

// Chunks are numbered as step_problem() does it: piece by piece, the trees of a root in their order. None where the
// clock is over, or a tree takes a link that the network lacks.
std::optional<TimeSchedule> tree_schedule(const StepNetwork& network, const std::vector<Tree>& trees,
                                          std::int32_t pieces, double chunk_bytes, const StepClock& clock);

}  // namespace weft::synthesis
