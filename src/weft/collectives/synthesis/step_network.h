// weft/collectives/synthesis/step_network.h -- a topology as edges and limits, for the step search.
//
//   0 ==2== 1       edges   0->1 1->0 1->2 2->1          limits  {0->1} 2   {1->0} 2
//           |                                                    {1->2} 1   {2->1} 1
//           1
//           |       Chunks do not stop at a switch: every path through it is an edge, and each of its
//           2       links limits all edges that use it.
//
// An edge is crossed in one step; a limit is the number of chunks that can pass per round. A round
// is the time in which a link of `round_rate` carries one chunk. That rate is the greatest common
// divisor of the topology's rates, or the least of them if the divisor would be tiny.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "weft/base/result.h"
#include "weft/plan/cluster/topology.h"

namespace weft::synthesis {

struct StepEdge {
  std::int32_t from = 0, to = 0;  // devices

  friend auto operator<=>(const StepEdge&, const StepEdge&) = default;
};

struct StepLimit {
  std::vector<std::int32_t> edges;  // sorted
  double capacity = 1;              // chunks per round, over all these edges
  // `copied`: the link leads to a switch that copies, so a chunk that takes several of the edges at
  // the same time passes it once. `added`: it leads from a switch that adds, the reverse. Step
  // search ignores both.
  bool copied = false, added = false;

  friend auto operator<=>(const StepLimit&, const StepLimit&) = default;
};

struct StepNetwork {
  std::int32_t devices = 0;
  std::vector<StepEdge> edges;  // sorted; equal ones are paths through different switches
  std::vector<double> latency;  // seconds per edge
  std::vector<StepLimit> limits;
  double round_rate = 0;  // bytes per second
};

// Larger topologies are rejected: the formula would not fit in memory.
inline constexpr std::int32_t kMostStepDevices = 256;
inline constexpr std::size_t kMostStepEdges = 1 << 16;

// Fails if some device cannot reach another.
Result<StepNetwork> step_network(const cluster::Topology& topology);

// Reverses every edge: a reduction on one network is a distribution on the other.
StepNetwork reversed(const StepNetwork& network);

// distances[from][to] in steps; -1: cannot be reached.
std::vector<std::vector<std::int32_t>> step_distances(const StepNetwork& network);

// The chunks that pass a limit in `rounds` rounds, and the rounds that `chunks` chunks need.
std::int64_t chunks_in(const StepLimit& limit, std::int64_t rounds);
std::int64_t rounds_for(const StepLimit& limit, std::int64_t chunks);

}  // namespace weft::synthesis
