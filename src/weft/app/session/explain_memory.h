// weft/app/session/explain_memory.h -- EXPLAIN (MEMORY): the fullest rank's memory and how to reduce it.
//
// Included by app/session and app/command only.
#pragma once
#include <string>

#include "weft/app/explain/report.h"
#include "weft/app/session/state.h"
#include "weft/planner/statement/prepare.h"

namespace weft::session {

// Each suggestion to lower the peak is planned and packed like the plan itself before it is listed.
Result<std::string> explain_memory(const Session::State& state, const Context& context,
                                   const Prepared& prepared, const explain::Report& about, bool json);

}  // namespace weft::session
