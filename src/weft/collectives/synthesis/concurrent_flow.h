// weft/collectives/synthesis/concurrent_flow.h -- the rate of an all-to-all as a flow.
//
//   ring of 4 links of 1, both directions   each device to each other at 1/2: neighbours take 1/2 of a
//                                           link, opposite ones 1/4 + 1/4 over two links either way
//
// The maximum concurrent multicommodity flow of an all-to-all: the largest rate at which all pairs
// together fit the capacities. Arc lengths grow with the flow (Garg and Könemann 1998, Fleischer
// 2000), in steps that shrink. The lengths prove a bound at all times: no rate exceeds
//
//   sum of capacity * length  /  sum over pairs of their distance
//
// The flow of the last steps, scaled to fit, attains `rate`.
#pragma once
#include <cstdint>
#include <vector>

#include "weft/collectives/synthesis/deadline.h"
#include "weft/collectives/synthesis/wires.h"

namespace weft::synthesis {

// A graph in which each arc uses one or several capacities.
struct FlowNetwork {
  struct Arc {
    std::int32_t from = 0, to = 0;
    std::vector<std::int32_t> uses;  // capacities
  };
  std::int32_t ends = 0, nodes = 0;  // nodes below `ends` send and receive
  std::vector<Arc> arcs;
  std::vector<double> capacities;  // bytes per second
};

FlowNetwork flow_network(const Wires& wires);

struct FlowPath {
  std::int32_t from = 0, to = 0;
  std::vector<std::int32_t> arcs;
  double share = 0;  // fraction of the pair's flow
};

struct ConcurrentFlow {
  double rate = 0, bound = 0;   // bytes per second per pair
  std::vector<FlowPath> paths;  // sorted by pair; the shares of a pair add up to 1
};

// Runs until rate and bound are within `gap` of each other, or until the deadline; then the rate
// may be 0 and the bound infinite. Thousands of devices have more paths than fit in memory, so
// paths are optional.
// REQUIRES: every end can reach every other
enum class FlowPaths : bool { no, yes };
ConcurrentFlow find_concurrent_flow(const FlowNetwork& network, double gap, const Deadline& deadline = {},
                                    FlowPaths paths = FlowPaths::yes);

}  // namespace weft::synthesis
