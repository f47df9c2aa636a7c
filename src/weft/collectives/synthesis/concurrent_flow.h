// weft/collectives/synthesis/concurrent_flow.h -- how fast every device can send to every other, all at the same time.
//
//   ring of 4 links of 1, both ways      each device to each other at 1/2: neighbours take 1/2 of a link, the
//                                        opposite 1/4 + 1/4 over two links either way
//
// The maximum concurrent multicommodity flow of an all-to-all: the largest rate at which all pairs together fit
// the capacities. Lengths grow where flow goes (Garg and Könemann 1998, Fleischer 2000), in steps that shrink.
// At all times the lengths prove a bound: no rate exceeds
//
//   sum of capacity * length  /  sum over pairs of their distance
//
// and the flow of the last steps, scaled to fit, attains `rate`.
#pragma once
#include <cstdint>
#include <vector>

#include "weft/collectives/synthesis/deadline.h"
#include "weft/collectives/synthesis/wires.h"

namespace weft::synthesis {

// A graph whose arcs take of one or several capacities.
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
  double share = 0;  // of what the pair sends
};

struct ConcurrentFlow {
  double rate = 0, bound = 0;   // bytes per second of each pair
  std::vector<FlowPath> paths;  // by pair; the shares of a pair add up to 1
};

// Until rate and bound are within `gap` of each other, or time is over; then the rate may be 0 and the bound infinite.
// Thousands of devices have more paths than there is room for: whoever needs none says so.
// REQUIRES: every end can reach every other
enum class FlowPaths : bool { no, yes };
ConcurrentFlow find_concurrent_flow(const FlowNetwork& network, double gap, const Deadline& deadline = {},
                                    FlowPaths paths = FlowPaths::yes);

}  // namespace weft::synthesis
