#include "weft/formats/trace_json.h"

#include <nlohmann/json.hpp>

namespace weft::formats {

std::string print_trace_json(const Trace& trace) {
  nlohmann::ordered_json events = nlohmann::ordered_json::array();
  for (const TraceName& name : trace.names) {
    const bool process = name.thread < 0;
    nlohmann::ordered_json event = {
        {"ph", "M"}, {"name", process ? "process_name" : "thread_name"}, {"pid", name.process}};
    if (!process) event["tid"] = name.thread;
    event["args"] = {{"name", name.name}};
    events.push_back(std::move(event));
  }
  constexpr double kMicroseconds = 1e6;
  for (const TraceEvent& event : trace.events) {
    nlohmann::ordered_json row = {{"ph", "X"},
                                  {"pid", event.process},
                                  {"tid", event.thread},
                                  {"name", event.name},
                                  {"cat", event.category},
                                  {"ts", event.begin * kMicroseconds},
                                  {"dur", event.seconds * kMicroseconds}};
    for (const auto& [key, value] : event.facts) row["args"][key] = value;
    events.push_back(std::move(row));
  }
  const nlohmann::ordered_json json = {{"traceEvents", std::move(events)}, {"displayTimeUnit", "ms"}};
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace weft::formats
