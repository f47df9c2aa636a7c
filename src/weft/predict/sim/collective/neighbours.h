// weft/predict/sim/collective/neighbours.h -- time of concurrent sends to neighbours.
//
//   permute   0 ==> 1 ==> 2 ==> 3 ==> 0     each to the next, the last to the first
//   halo      0 <=> 1 <=> 2 <=> 3           each its borders to both sides; those at the ends to one
//
//   a ring of eight, groups of four with stride two:   0 2 4 6 and 1 3 5 7
//     the route from 0 to 2 uses the cable from 1 to 2, and so does that from 1 to 3: each gets half of it;
//     from 6 back to 0 it is the same
//
// Messages of all groups of a mesh axis are concurrent flows on the wires, with max-min fair
// sharing (network.h). The last arrival determines the time.
#pragma once
#include <cstdint>

#include "weft/base/result.h"
#include "weft/plan/cluster/topology.h"
#include "weft/predict/sim/collective/run_parameters.h"

namespace weft::sim {

struct Neighbours {
  std::int32_t ranks = 2;   // per group
  std::int32_t stride = 1;  // between consecutive members, in devices
  bool both_ways = false;   // sends to both sides, otherwise only to the next
  bool closed = true;       // the last rank's next is the first
};

struct NeighbourTime {
  double latency_seconds = 0, transfer_seconds = 0;
};

// `bytes` is the total sent per rank; `threadblocks` of a rank copy at once. Fails if the topology
// does not connect two neighbours. REQUIRES: cluster::check(topology); ranks * stride divides its
// devices
Result<NeighbourTime> simulate(const Neighbours& neighbours, const cluster::Topology& topology, double bytes,
                               std::int32_t threadblocks, const RunParameters& parameters);

}  // namespace weft::sim
