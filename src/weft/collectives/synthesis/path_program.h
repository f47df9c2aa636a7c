// weft/collectives/synthesis/path_program.h -- an all-to-all along the paths of a concurrent flow, as a chunk program.
//
//   block of 0 for 2:   half of its chunks over 1, half over 3, in turns (deal_shares.h)
//
// On their way chunks rest in scratch. What a device has for itself it copies.
#pragma once
#include <cstdint>
#include <vector>

#include "weft/base/result.h"
#include "weft/collectives/chunks/program.h"
#include "weft/collectives/synthesis/hop_program.h"
#include "weft/collectives/synthesis/routed_trees.h"

namespace weft::synthesis {

// What a pair of devices sends, by the ways it takes.
struct RoutedPath {
  std::int32_t from = 0, to = 0;
  std::vector<TreeEdge> edges;  // one after another
  double share = 0;             // of the pair's block
};

struct PathProgram {
  std::int32_t ranks = 0;
  std::int32_t chunks = 1;  // of a block
  HopPace pace = {};
};

// Paths are sorted by pair, and the shares of a pair add up to 1. Fails where the chunks or steps would be too many.
Result<collective::Program> path_program(const PathProgram& request, const std::vector<RoutedPath>& paths,
                                         const Routes& routes);

}  // namespace weft::synthesis
