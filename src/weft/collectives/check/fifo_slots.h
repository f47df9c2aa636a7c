// weft/collectives/check/fifo_slots.h -- runs a program once, and finds how many slots its connections need.
//
// With S slots a connection, the giving of message k + S waits for the taking of message k. A message
// leaves its slot when the action that takes it has ended, so that an action which takes and gives
// needs a free slot ahead before it frees the one behind.
//
// Every thread goes as far as it can. When none can go on, but some wait for a free slot only, there is
// one slot more from then on. No more than that is needed: whatever can be done with S slots can be
// done with S + 1, so where all are stuck with S, every run with S comes to that state; the S at the
// end is the smallest.
//
// One choice is open: which of several consumers of a counter gets its share first. Here whoever came first
// does. Whether all come to the end does not depend on it as long as the consumers do alike.
#pragma once
#include <cstdint>
#include <vector>

#include "weft/collectives/check/happens_before.h"
#include "weft/collectives/chunks/actions.h"

namespace weft::collective {

struct TrialRun {
  std::vector<std::int32_t> order;  // of the nodes, as they came
  std::vector<std::int32_t> at;     // the node each thread stands before, or its end
  std::int32_t slots = 1;           // that a connection had in the end
  bool finished = false;            // whether every thread came to its end
};

// With `slots` slots; 0: as many as it takes. Notes in `graph` which packets were written first by whom.
TrialRun trial_run(const Actions& actions, HappensBefore& graph, std::int32_t slots);

}  // namespace weft::collective
