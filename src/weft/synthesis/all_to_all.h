// weft/synthesis/all_to_all.h -- every device's block for every other, along the paths of a concurrent flow.
//
//   flow      0 -> 2:  half over 1, half over 3           parts of a block are dealt out over these paths so
//   parts     2 a block: one over 1, one over 3           that no cable has more than its share
//
// The bound is that of the topology's wires. The paths are those of the network of devices; path_program.h makes
// a program of them.
#pragma once
#include <cstdint>
#include <vector>

#include "weft/base/result.h"
#include "weft/cluster/topology.h"
#include "weft/synthesis/concurrent_flow.h"
#include "weft/synthesis/deadline.h"
#include "weft/synthesis/step_network.h"

namespace weft::synthesis {

struct AllToAll {
  double bound = 0;  // bytes per second: no all-to-all has a higher algorithm bandwidth
  double flow = 0;   // what the flow on the network of devices has
};

// Within a hundredth of each other unless time runs out.
Result<AllToAll> bound_all_to_all(const cluster::Topology& topology, const Deadline& deadline = {});

// Which of the flow's paths every part of a block takes, by part: source, target, then part of `cut`. Past the
// last path: none, what a device has for itself.
std::vector<std::size_t> deal_paths(const StepNetwork& network, const ConcurrentFlow& flow, std::int32_t cut);

}  // namespace weft::synthesis
