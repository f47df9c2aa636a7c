// weft/collectives/synthesis/step_pareto.h -- the frontier between latency and bandwidth.
//
//   chunks  steps  rounds
//        1      2       2   latency     fewest steps
//        2      2       3   latency     ... and of those the fewest rounds a chunk
//        6      3       7   bandwidth   no algorithm needs fewer rounds a chunk
//
// For every number of steps, from the fewest on, the algorithm with the fewest rounds for its chunks, where
// that is fewer than with less steps. It ends where the bandwidth of the network is reached, or at `most_steps`:
// a pipeline never quite reaches it.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "weft/collectives/synthesis/step_search.h"

namespace weft::synthesis {

struct StepLimits {
  std::int32_t most_steps = 0;  // 0: four more than the fewest
  std::int32_t most_extra_rounds =
      -1;  // beyond the steps; -1: as many as reach the network's bandwidth, up to 12
  std::int32_t most_chunks = 64;
};

struct StepPoint {
  StepQuestion question;
  StepAnswer answer;
  double seconds = 0;
};

struct StepFrontier {
  std::vector<StepPoint> points;  // satisfiable, by steps
  std::vector<StepPoint>
      refuted;  // with as many chunks or more; where it is unknown, a better point may exist
  double least_rounds_a_chunk = 0;  // of any algorithm, by counting
  std::int32_t least_steps = 0;
  bool reaches_bandwidth = false;
};

Result<StepFrontier> step_frontier(const StepNetwork& network, collective::Kind kind, std::int32_t root,
                                   const StepLimits& limits, const StepClock& clock);

// "latency", "bandwidth", "both" or "" for what a point is best in.
std::string best_in(const StepFrontier& frontier, const StepPoint& point);

}  // namespace weft::synthesis
