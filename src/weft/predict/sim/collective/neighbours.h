// weft/predict/sim/collective/neighbours.h -- how long ranks take that all send to their neighbours at once.
//
//   permute   0 ==> 1 ==> 2 ==> 3 ==> 0     each to the next, the last to the first
//   halo      0 <=> 1 <=> 2 <=> 3           each its borders to both sides; those at the ends to one
//
//   a ring of eight, groups of four that lie two apart:   0 2 4 6 and 1 3 5 7
//     the way from 0 to 2 passes the cable from 1 to 2, and so does that from 1 to 3: each has half of it;
//     from 6 back to 0 it is the same
//
// Messages are flows on the wires of all groups of a mesh axis at once, shared max-min fairly (network.h);
// the last one to arrive decides.
#pragma once
#include <cstdint>

#include "weft/base/result.h"
#include "weft/plan/cluster/topology.h"
#include "weft/predict/sim/collective/run_parameters.h"

namespace weft::sim {

struct Neighbours {
  std::int32_t ranks = 2;   // of a group
  std::int32_t stride = 1;  // from one of them to the next, in devices
  bool both_ways = false;   // to either side, else to the next alone
  bool closed = true;       // the last has the first for its next
};

struct NeighbourTime {
  double latency_seconds = 0, transfer_seconds = 0;
};

// `bytes` is what a rank sends in all; `threadblocks` of it copy at once. Fails where the wires do not
// join two neighbours. REQUIRES: cluster::check(topology); ranks * stride divides its devices
Result<NeighbourTime> simulate(const Neighbours& neighbours, const cluster::Topology& topology, double bytes,
                               std::int32_t threadblocks, const RunParameters& parameters);

}  // namespace weft::sim
