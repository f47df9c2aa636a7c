// weft/app/session/explain_memory.h -- EXPLAIN (MEMORY): what the fullest rank holds over a step, and what would lower it.
//
// Included by app/session and app/command only.
#pragma once
#include <string>

#include "weft/app/explain/report.h"
#include "weft/app/session/state.h"
#include "weft/planner/statement/prepare.h"

namespace weft::session {

// What would lower the peak is tried before it is said: planned and packed as the plan itself is.
Result<std::string> explain_memory(const Session::State& state, const Context& context,
                                   const Prepared& prepared, const explain::Report& about, bool json);

}  // namespace weft::session
