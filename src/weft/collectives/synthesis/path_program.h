// weft/collectives/synthesis/path_program.h -- a chunk program for all_to_all along given paths.
//
//   block of 0 for 2:   half of its chunks over 1, half over 3, in turns (interleave_shares.h)
//
// In transit, chunks are stored in scratch. A device copies its own block locally.
#pragma once
#include <cstdint>
#include <vector>

#include "weft/base/result.h"
#include "weft/collectives/chunks/program.h"
#include "weft/collectives/synthesis/hop_program.h"
#include "weft/collectives/synthesis/routed_trees.h"

namespace weft::synthesis {

// A path of a pair of devices, and its share of their block.
struct RoutedPath {
  std::int32_t from = 0, to = 0;
  std::vector<TreeEdge> edges;  // in order
  double share = 0;             // fraction of the pair's block
};

struct PathProgram {
  std::int32_t ranks = 0;
  std::int32_t chunks = 1;  // per block
  HopPace pace = {};
};

// Paths are sorted by pair, and the shares of a pair add up to 1. Fails if there are too many
// chunks or steps.
Result<collective::Program> path_program(const PathProgram& request, const std::vector<RoutedPath>& paths,
                                         const Routes& routes);

}  // namespace weft::synthesis
