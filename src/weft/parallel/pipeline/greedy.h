// weft/parallel/pipeline/greedy.h -- list scheduling by the preferences of each stage.
//
// A free stage runs a B that has arrived, else an F that has arrived and fits in memory, else a W,
// unless something better arrives soon. Policies differ in how far a stage runs ahead, how long a W
// waits, and which chunk goes first. The search tries many policies, which may differ between
// stages.
#pragma once
#include <vector>

#include "weft/parallel/pipeline/network.h"
#include "weft/parallel/pipeline/schedule.h"

namespace weft::pipeline {

struct StagePolicy {
  double lead = 1e9;    // most Fs ahead of the Bs, in passes of a chunk
  double eager = 0;     // with fewer than these ahead, an F goes before a B
  double patience = 0;  // a W must be this far done when the next pass arrives
  double reserve = 0;   // memory that the first chunk leaves to the others
  bool later_chunk_first = true;
};

struct Limits {
  std::vector<double> held;  // capacity per stage, in passes of a chunk; at least one per chunk
  double weight_share = 1;   // share of a pass' memory held until its W; B frees the rest
};

using Orders = std::vector<std::vector<std::int32_t>>;  // of pass numbers, see network.h

// The result always respects the limits. `network`: of a line, a loop or a v, with separate B and
// W.
Orders greedy(const Schedule& shape, const Network& network, const Limits& limits,
              const std::vector<StagePolicy>& policies);

// Like greedy(), but a free stage picks, among passes that have arrived, the first in `nominal`,
// the time of each pass. It starts nothing that is more than `window` later than the first
// unfinished pass. Incomplete if memory deadlocks.
Orders greedy_by_time(const Schedule& shape, const Network& network, const Limits& limits,
                      const std::vector<double>& nominal, double window, double patience);

// The schedule of these orders, with the shape's other fields.
Schedule to_schedule(const Schedule& shape, const Network& network, const Orders& orders);

}  // namespace weft::pipeline
