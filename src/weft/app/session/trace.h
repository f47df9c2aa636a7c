// weft/app/session/trace.h -- predicted and measured timelines in one trace file.
//
// Included by app/session and app/command only.
#pragma once
#include <span>
#include <string>

#include "weft/base/result.h"
#include "weft/formats/trace_json.h"
#include "weft/parallel/pipeline/schedule_cost.h"
#include "weft/predict/sim/step/predict.h"
#include "weft/program/tasks/program.h"
#include "weft/program/tasks/timeline.h"

namespace weft::session {

// Adds one rank's timeline: a compute thread and one thread per mesh axis. `process` must be
// unused.
void add_rank(formats::Trace& trace, const program::Program& program, const program::Timeline& timeline,
              std::int32_t process, std::string name);

// Adds a thread of passes to a process. REQUIRES: one slot per pass.
void add_passes(formats::Trace& trace, std::span<const pipeline::Pass> passes,
                std::span<const pipeline::Slot> slots, std::int32_t process, std::int32_t thread);

// One process per class of ranks.
formats::Trace trace_of(const sim::Prediction& prediction);

Status write_trace(const std::string& path, const formats::Trace& trace);

}  // namespace weft::session
