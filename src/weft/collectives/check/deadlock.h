// weft/collectives/check/deadlock.h -- explains a deadlock.
//
//   gpu 4 tb 6 step 0: waits for tb 5 step 1, which waits for tb 6 step 0
//   gpu 5 tb 3 step 2: waits for a message from gpu 2 on channel 1 that no rank sends
//
// If a thread waits for something that never happens, that wait is reported. Otherwise the waits
// form a cycle, and one cycle is reported.
#pragma once
#include <optional>
#include <string>

#include "weft/collectives/check/check.h"
#include "weft/collectives/check/fifo_slots.h"
#include "weft/collectives/check/happens_before.h"
#include "weft/collectives/chunks/actions.h"

namespace weft::collective {

// REQUIRES: the run has not finished.
Finding explain_deadlock(const Actions& actions, const HappensBefore& graph, const TrialRun& run);

// Finds a message that is sent and never received.
std::optional<Finding> find_unreceived(const Actions& actions, const Uses& uses);

// The first transfer whose two ends disagree on its number of chunks. It is wrong once small
// transfers share a slot, even if the totals agree. `connection`: only there; -1: any.
std::optional<Finding> find_mismatch(const Actions& whole, const Uses& uses, std::int32_t connection = -1);

Where where(const Actions& actions, const Action& action);
// "tb 5 step 1", preceded by its gpu if that is not `rank`.
std::string place(const Actions& actions, const Action& action, std::int32_t rank);

}  // namespace weft::collective
