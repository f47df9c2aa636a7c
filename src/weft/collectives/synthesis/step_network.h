// weft/collectives/synthesis/step_network.h -- a topology as step-optimal synthesis sees it: who can reach whom in one
// step, and how many chunks may pass together in one round.
//
//   0 ==2== 1       edges   0->1 1->0 1->2 2->1          limits  {0->1} 2   {1->0} 2
//           |                                                    {1->2} 1   {2->1} 1
//           1
//           |       A switch is no place to stop: every way through it is an edge, and each of its cables
//           2       limits all edges that use it.
//
// A round is the time in which a link of `round_rate` carries one chunk: the greatest common divisor of the
// topology's rates, or the least of them where that would be tiny.
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
  double capacity = 1;              // chunks a round, of all these edges together
  // The cable leads to a switch that copies: a chunk that takes several of the edges at the same time passes
  // once; or it comes from one that adds up, which is the same backwards. Steps do not count on it.
  bool copied = false, added = false;

  friend auto operator<=>(const StepLimit&, const StepLimit&) = default;
};

struct StepNetwork {
  std::int32_t devices = 0;
  std::vector<StepEdge> edges;  // sorted; equal ones are ways through different switches
  std::vector<double> latency;  // of each edge, in seconds
  std::vector<StepLimit> limits;
  double round_rate = 0;  // bytes per second
};

// More are refused: a formula over them would not fit.
inline constexpr std::int32_t kMostStepDevices = 256;
inline constexpr std::size_t kMostStepEdges = 1 << 16;

// Fails where some device cannot reach another: no collective can then be done.
Result<StepNetwork> step_network(const cluster::Topology& topology);

// Every edge the other way: what combines there, distributes here.
StepNetwork reversed(const StepNetwork& network);

// distances[from][to] in steps; -1: cannot be reached.
std::vector<std::vector<std::int32_t>> step_distances(const StepNetwork& network);

// Chunks that pass a limit in so many rounds, and rounds that so many chunks need.
std::int64_t chunks_in(const StepLimit& limit, std::int64_t rounds);
std::int64_t rounds_for(const StepLimit& limit, std::int64_t chunks);

}  // namespace weft::synthesis
