// weft/collectives/synthesis/tree_schedule.h -- schedules the chunks of trees on a network.
//
//   the trees of a forest, pipelined in segments:              root 0   |p0|p1|p2|p3|
//                                                              child      |p0|p1|p2|p3|
//
// Trees saturate the links, so with long messages in fine segments they finish close to the bound.
// Of the ready hops the one due first starts. A segment is due one period after the previous one,
// where a period is the time that all trees need for one segment. Hops with a long path ahead are
// due earlier.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "weft/collectives/synthesis/pack_trees.h"
#include "weft/collectives/synthesis/step_search.h"
#include "weft/collectives/synthesis/time_schedule.h"

namespace weft::synthesis {

// Chunks are numbered as in step_problem(): piece by piece, the trees of a root in order. Empty if
// the clock expires, or a tree uses an edge that the network lacks.
std::optional<TimeSchedule> tree_schedule(const StepNetwork& network, const std::vector<Tree>& trees,
                                          std::int32_t pieces, double chunk_bytes, const StepClock& clock);

}  // namespace weft::synthesis
