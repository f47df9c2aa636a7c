// weft/predict/sim/trace/trace_deadlock.h -- explains why a trace deadlocks: the wait cycle.
//
//   the ranks wait for each other: rank 0 "ar_b" (node 4) waits for rank 1 "ar_b" (node 7), which waits for
//   rank 1 "ar_a" (node 2), which waits for rank 0 "ar_a" (node 3), which waits for rank 0 "ar_b" (node 4)
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "weft/base/result.h"
#include "weft/predict/sim/trace/execution_trace.h"

namespace weft::sim {

enum class NodeState : std::uint8_t { waiting, ready, running, done };

// The state of every node, by rank.
using NodeStates = std::vector<std::vector<NodeState>>;

// REQUIRES: at least one node is not done.
Error standstill(const ExecutionTrace& trace, const NodeStates& states);

}  // namespace weft::sim
