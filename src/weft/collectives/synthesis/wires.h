// weft/collectives/synthesis/wires.h -- a topology in whole numbers, as flows and trees need it.
//
//   links of 25, 50 and 12.5 GB/s       arcs of 2, 4 and 1, a unit being 12.5 GB/s
//
// Nodes below `gpus` compute; the others pass on what comes, without copying it. A node that passes on less
// than its links bring stands as two, what comes in and what goes out, with the limit as an arc between. Of a
// cable that carries one way at a time each way has half.
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
  std::int32_t link = -1;  // of the topology; -1: the limit of a node
};

struct Wires {
  std::int32_t gpus = 0, nodes = 0;
  std::vector<Wire> wires;
  double unit = 1;  // bytes per second of one unit of capacity
};

// Fails for fewer than two devices, a device that another cannot reach, and a switch that no device is
// joined to. Rates are counted in bytes per second, or coarser where sums would not fit.
Result<Wires> wires_of(const cluster::Topology& topology);

// The same with every wire turned round: what gathers on one scatters on the other.
Wires reversed(const Wires& wires);

}  // namespace weft::synthesis
