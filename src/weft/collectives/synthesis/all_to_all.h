// weft/collectives/synthesis/all_to_all.h -- all_to_all along the paths of a concurrent flow.
//
//   0 -> 2:  half over 1, half over 3           shares of a block, so that no link is overloaded
//
// Computes a maximum concurrent flow on the links: exactly for few devices (fractional_packing.h),
// approximately for more (concurrent_flow.h); the latter's blocks are cut into a few parts.
// path_program.h turns the paths into a program.
#pragma once
#include <cstdint>
#include <vector>

#include "weft/base/result.h"
#include "weft/collectives/synthesis/deadline.h"
#include "weft/collectives/synthesis/path_program.h"
#include "weft/collectives/synthesis/route_table.h"
#include "weft/plan/cluster/topology.h"

namespace weft::synthesis {

struct AllToAll {
  double bound = 0;  // bytes per second: upper bound on the algorithm bandwidth
  double flow = 0;   // bytes per second that the paths attain
  std::vector<RoutedPath> paths;
  Routes routes;
};

// With more devices, blocks are cut into this many parts, each on one path.
inline constexpr std::int32_t kPathParts = 8;

// Up to 20 devices, bound and flow are equal up to rounding. With more devices they are within one
// percent if the flow converges in time. bound_all_to_all() computes no paths.
Result<AllToAll> bound_all_to_all(const cluster::Topology& topology, const Deadline& deadline = {});
Result<AllToAll> route_all_to_all(const cluster::Topology& topology, const Deadline& deadline = {});

}  // namespace weft::synthesis
