// weft/predict/sim/collective/program_routes.h -- the precomputed routes of a program's transfers.
//
// Two ranks may have several routes of equal cost. The pair and the channel (or threadblock) select
// one, so that channels spread over parallel wires and every run uses the same routes.
#pragma once
#include <cstdint>
#include <vector>

#include "weft/base/result.h"
#include "weft/collectives/chunks/actions.h"
#include "weft/plan/cluster/topology.h"
#include "weft/predict/sim/network.h"

namespace weft::sim {

struct Way {
  std::int32_t route = -1;  // in the network
  double latency_seconds = 0;
};

// Indexed by the object they belong to. A transfer within a rank has no route and no latency.
struct Ways {
  std::vector<Way> connections;
  std::vector<Way> cells;       // for a target: from the agent to it; for a source: from it to the agent
  std::vector<double> signals;  // seconds from an action to the counter it raises
};

// Fails if the topology has fewer devices than the program has ranks, or does not connect two
// communicating ranks.
Result<Ways> find_ways(const collective::Actions& actions, const cluster::Topology& topology,
                       Network& network);

}  // namespace weft::sim
