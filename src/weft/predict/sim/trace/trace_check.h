// weft/predict/sim/trace/trace_check.h -- whether a trace, a network and a system are compatible.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "weft/base/result.h"
#include "weft/predict/sim/trace/execution_trace.h"
#include "weft/predict/sim/trace/trace_network.h"
#include "weft/predict/sim/trace/trace_system.h"

namespace weft::sim {

using GroupPositions = std::vector<std::map<std::int32_t, std::size_t>>;  // by group: ranks' positions

Result<GroupPositions> check(const ExecutionTrace& trace, const TraceNetwork& network,
                             const TraceSystem& system);

}  // namespace weft::sim
