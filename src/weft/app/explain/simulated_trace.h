// weft/app/explain/simulated_trace.h -- what a simulation of execution traces came to, in words and for programs.
#pragma once
#include <span>
#include <string>

#include "weft/predict/sim/trace/trace_run.h"

namespace weft::explain {

// `notes`: what was left out or assumed when the traces were read. `wall_seconds`: that the simulation took.
std::string print_text(const sim::TraceRun& run, std::span<const std::string> notes, double wall_seconds);
std::string print_json(const sim::TraceRun& run, std::span<const std::string> notes,
                       double wall_seconds);  // one line

}  // namespace weft::explain
