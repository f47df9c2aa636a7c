// weft/collectives/check/deadlock.h -- why a run came to a halt, in words.
//
//   gpu 4 tb 6 step 0: waits for tb 5 step 1, which waits for tb 6 step 0
//   gpu 5 tb 3 step 2: waits for a message from gpu 2 on channel 1 that nobody sends
//
// A thread that waits for something nobody ever does explains the rest; where there is none, the waits
// form a cycle, and one is told.
#pragma once
#include <optional>
#include <string>

#include "weft/collectives/check/check.h"
#include "weft/collectives/check/fifo_slots.h"
#include "weft/collectives/check/happens_before.h"
#include "weft/collectives/chunks/actions.h"

namespace weft::collective {

// REQUIRES: the run has not finished.
Finding why_stuck(const Actions& actions, const HappensBefore& graph, const TrialRun& run);

// A message that is still on its connection in the end.
std::optional<Finding> find_unreceived(const Actions& actions, const Uses& uses);

// The first transfer whose two ends disagree about how many chunks it has: wrong once small transfers
// share a slot, even where the totals agree. `connection`: there alone; -1: anywhere.
std::optional<Finding> find_mismatch(const Actions& whole, const Uses& uses, std::int32_t connection = -1);

Where where(const Actions& actions, const Action& action);
// "tb 5 step 1", with its gpu in front where that is not `rank`.
std::string place(const Actions& actions, const Action& action, std::int32_t rank);

}  // namespace weft::collective
