// weft/collectives/synthesis/wires.h -- a topology with integer capacities, for flows and trees.
//
//   links of 25, 50 and 12.5 GB/s       arcs of 2, 4 and 1, a unit being 12.5 GB/s
//
// Nodes below `gpus` compute; the others forward without copying. A node with a bandwidth limit
// becomes two nodes, one for incoming and one for outgoing links, joined by an arc with the limit.
// A half-duplex link counts half per direction.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "weft/base/max_flow.h"
#include "weft/base/result.h"
#include "weft/plan/cluster/topology.h"

namespace weft::synthesis {

struct Wire {
  std::int32_t from = 0, to = 0;
  Amount capacity = 0;
  std::int32_t link = -1;  // topology link; -1: the limit of a node
};

struct Wires {
  std::int32_t gpus = 0, nodes = 0;
  std::vector<Wire> wires;
  double unit = 1;  // bytes per second per unit of capacity
};

// Fails for fewer than two devices, a device that another cannot reach, and a switch without
// devices. Rates are rounded to bytes per second, or coarser if sums would overflow.
Result<Wires> wires_of(const cluster::Topology& topology);

// Reverses every wire: an all_gather on one is a reduce_scatter on the other.
Wires reversed(const Wires& wires);

}  // namespace weft::synthesis
