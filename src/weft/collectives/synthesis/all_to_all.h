// weft/collectives/synthesis/all_to_all.h -- every device's block for every other, along the paths of a concurrent flow.
//
//   0 -> 2:  half over 1, half over 3           shares of a block, so that no cable has more than it carries
//
// A maximum concurrent flow on the wires: exact for few devices (fractional_packing.h), nearly so for more
// (concurrent_flow.h), whose blocks are cut into a few parts. path_program.h makes a program of the paths.
#pragma once
#include <cstdint>
#include <vector>

#include "weft/base/result.h"
#include "weft/collectives/synthesis/deadline.h"
#include "weft/collectives/synthesis/path_program.h"
#include "weft/collectives/synthesis/route_book.h"
#include "weft/plan/cluster/topology.h"

namespace weft::synthesis {

struct AllToAll {
  double bound = 0;  // bytes per second: no all-to-all has a higher algorithm bandwidth
  double flow = 0;   // what the paths have
  std::vector<RoutedPath> paths;
  Routes routes;
};

// The parts that paths of more devices have, each whole on one of them.
inline constexpr std::int32_t kPathParts = 8;

// Of up to 20 devices bound and flow are the same but for rounding; of more they are within a hundredth of each other
// where the flow converges in time. The bound alone, or paths as well.
Result<AllToAll> bound_all_to_all(const cluster::Topology& topology, const Deadline& deadline = {});
Result<AllToAll> route_all_to_all(const cluster::Topology& topology, const Deadline& deadline = {});

}  // namespace weft::synthesis
