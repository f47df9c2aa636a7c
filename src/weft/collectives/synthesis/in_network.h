// weft/collectives/synthesis/in_network.h -- all-reduce in switches that add and copy (SHARP).
//
//   devices --B--> [adds, copies] --B--> devices       every device sends its message once and gets the sum once:
//                                                      B bytes per second, where trees of devices have
//                                                      B * n / (2 (n - 1))
//
// One such switch is the root. Sums reach it along trees of the links that lead towards it; the
// result leaves along trees of the links that lead away, at the same time, since these are
// different links. Other switches that add and copy may branch the trees. They are reached like
// devices, so that the rate is attained (Edmonds).
#pragma once
#include <cstdint>
#include <optional>

#include "weft/base/result.h"
#include "weft/collectives/synthesis/deadline.h"
#include "weft/plan/cluster/topology.h"

namespace weft::synthesis {

struct InNetwork {
  std::int32_t root = -1;  // topology node
  double rate = 0;         // bytes per second of the all-reduce
};

// The best root. Empty if no switch can add and copy, or no such switch is reached by all devices.
std::optional<InNetwork> reduce_in_network(const cluster::Topology& topology, const Deadline& deadline = {});

}  // namespace weft::synthesis
