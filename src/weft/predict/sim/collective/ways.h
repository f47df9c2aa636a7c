// weft/predict/sim/collective/ways.h -- the routes that a program's bytes take, found once before it runs.
//
// Two ranks may talk over several equal routes; which one is a matter of the two and of the channel (or
// block), so that channels spread over parallel wires, and every run takes the same.
#pragma once
#include <cstdint>
#include <vector>

#include "weft/base/result.h"
#include "weft/collectives/chunks/actions.h"
#include "weft/plan/cluster/topology.h"
#include "weft/predict/sim/network.h"

namespace weft::sim {

struct Way {
  std::int32_t route = -1;  // of the network
  double latency_seconds = 0;
};

// All by index of what they belong to; what stays on its rank has no route and no latency.
struct Ways {
  std::vector<Way> connections;
  std::vector<Way> cells;       // a target: from the agent to it; a source: from it to the agent
  std::vector<double> signals;  // seconds from an action to the counter it raises
};

// Fails where the topology has fewer devices than the program has ranks, or does not join two that must talk.
Result<Ways> find_ways(const collective::Actions& actions, const cluster::Topology& topology,
                       Network& network);

}  // namespace weft::sim
