// weft/parallel/pipeline/greedy.h -- a schedule made by letting every stage do the best it can when it is free.
//
// A free stage does a B that has arrived, else an F that has arrived and has room, else a W, unless something
// better arrives soon. Policies differ in how far a stage runs ahead, for how much a W waits, and which goes
// first; the search tries many of them, and different ones a stage.
#pragma once
#include <vector>

#include "weft/parallel/pipeline/network.h"
#include "weft/parallel/pipeline/schedule.h"

namespace weft::pipeline {

struct StagePolicy {
  double lead = 1e9;    // Fs that may be ahead of the Bs, in passes of a chunk
  double eager = 0;     // while fewer than these are ahead, an F goes before a B
  double patience = 0;  // a W is not begun when something arrives before this share of it is done
  double reserve = 0;   // room that the first chunk leaves to the others
  bool later_chunk_first = true;
};

struct Limits {
  std::vector<double> held;  // what a stage may hold, in passes of a chunk, at least one a chunk
  double weight_share = 1;   // of what a pass holds, the part that waits for its W; B frees the rest
};

using Orders = std::vector<std::vector<std::int32_t>>;  // of pass numbers, see network.h

// Always a schedule within the limits. `network` is of a line, a loop or a v, with B and W apart.
Orders greedy(const Schedule& shape, const Network& network, const Limits& limits,
              const std::vector<StagePolicy>& policies);

// The same, but a free stage does of what has arrived what comes first in `nominal`, the time of each pass, and
// nothing that comes more than `window` later than the first that is not done. Incomplete where memory got stuck.
Orders greedy_by_time(const Schedule& shape, const Network& network, const Limits& limits,
                      const std::vector<double>& nominal, double window, double patience);

// The schedule of these orders, with the shape's name, clock and so on.
Schedule to_schedule(const Schedule& shape, const Network& network, const Orders& orders);

}  // namespace weft::pipeline
