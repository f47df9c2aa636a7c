// weft/app/explain/simulated_trace.h -- results of simulating execution traces, as text and as JSON.
#pragma once
#include <span>
#include <string>

#include "weft/predict/sim/trace/trace_run.h"

namespace weft::explain {

// `notes`: what was skipped or assumed when reading the traces. `wall_seconds`: time the simulation
// took.
std::string print_text(const sim::TraceRun& run, std::span<const std::string> notes, double wall_seconds);
std::string print_json(const sim::TraceRun& run, std::span<const std::string> notes,
                       double wall_seconds);  // one line

}  // namespace weft::explain
