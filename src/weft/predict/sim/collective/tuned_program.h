// weft/predict/sim/collective/tuned_program.h -- trees or paths as the fastest program.
//
//   forest  -->  programs of several grains (grain_search.h)  -->  the fastest for messages of this size
#pragma once
#include <cstdint>

#include "weft/base/result.h"
#include "weft/collectives/chunks/program.h"
#include "weft/collectives/synthesis/all_to_all.h"
#include "weft/collectives/synthesis/deadline.h"
#include "weft/collectives/synthesis/forest.h"
#include "weft/plan/cluster/topology.h"

namespace weft::sim {

struct TunedProgram {
  collective::Program program;
  double attained = 0;  // bytes per second, simulated
};

// Chunks times links in a program of these trees, if a root's block has this many chunks.
double hops_of(const synthesis::Forest& forest, double chunks);
inline constexpr double kMostHops = 1 << 20;  // more take minutes to check, and must be requested

// The result is not checked: see check.h. REQUIRES: forest.trees > 0
Result<TunedProgram> tune_trees(const cluster::Topology& topology, const synthesis::Forest& forest,
                                const synthesis::Deadline& deadline, std::int64_t bytes);

Result<TunedProgram> tune_paths(const cluster::Topology& topology, const synthesis::AllToAll& ways,
                                const synthesis::Deadline& deadline, std::int64_t bytes);

}  // namespace weft::sim
