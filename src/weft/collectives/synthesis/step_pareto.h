// weft/collectives/synthesis/step_pareto.h -- the Pareto frontier of latency and bandwidth.
//
//   chunks  steps  rounds
//        1      2       2   latency     fewest steps
//        2      2       3   latency     ... and of those the fewest rounds per chunk
//        6      3       7   bandwidth   no algorithm needs fewer rounds per chunk
//
// For every number of steps from the minimum on: the algorithm with the fewest rounds per chunk, if
// that improves on fewer steps. Ends when the bandwidth of the network is attained, or at
// `most_steps`: a pipeline only approaches it.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "weft/collectives/synthesis/step_search.h"

namespace weft::synthesis {

struct StepLimits {
  std::int32_t most_steps = 0;  // 0: the minimum plus four
  std::int32_t most_extra_rounds =
      -1;  // beyond the steps; -1: as many as attain the network's bandwidth, up to 12
  std::int32_t most_chunks = 64;
};

struct StepPoint {
  StepQuestion question;
  StepAnswer answer;
  double seconds = 0;
};

struct StepFrontier {
  std::vector<StepPoint> points;  // satisfiable, sorted by steps
  std::vector<StepPoint>
      refuted;  // no point with as many or more chunks; if unknown, a better point may exist
  double least_rounds_a_chunk = 0;  // lower bound by counting
  std::int32_t least_steps = 0;
  bool reaches_bandwidth = false;
};

Result<StepFrontier> step_frontier(const StepNetwork& network, collective::Kind kind, std::int32_t root,
                                   const StepLimits& limits, const StepClock& clock);

// "latency", "bandwidth", "both" or "": the measures in which a point is optimal.
std::string best_in(const StepFrontier& frontier, const StepPoint& point);

}  // namespace weft::synthesis
