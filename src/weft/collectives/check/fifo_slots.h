// weft/collectives/check/fifo_slots.h -- runs a program once and counts the FIFO slots it needs.
//
// With S slots per connection, the send of message k + S waits for the receive of message k. A
// message frees its slot when the action that receives it has ended. So an action that receives and
// sends needs a free slot on its output before it frees the one on its input.
//
// Every thread runs as far as it can. When all are blocked and some wait only for a free slot, the
// number of slots is raised by one. The final S is the least: whatever runs with S slots runs with
// S + 1, so if all threads block with S, every run with S reaches that state.
//
// One choice is free: which of several consumers of a counter is served first. Here it is the first
// to arrive. If the consumers do the same, termination does not depend on the choice.
#pragma once
#include <cstdint>
#include <vector>

#include "weft/collectives/check/happens_before.h"
#include "weft/collectives/chunks/actions.h"

namespace weft::collective {

struct TrialRun {
  std::vector<std::int32_t> order;  // the nodes in execution order
  std::vector<std::int32_t> at;     // per thread: its next node, or its end
  std::int32_t slots = 1;           // per connection, at the end of the run
  bool finished = false;            // whether every thread terminated
};

// Runs with `slots` slots; 0: as many as needed. Records in `graph` the first writer of each packet
// cell.
TrialRun trial_run(const Actions& actions, HappensBefore& graph, std::int32_t slots);

}  // namespace weft::collective
