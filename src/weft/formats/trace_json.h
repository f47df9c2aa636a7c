// weft/formats/trace_json.h -- timelines as trace events for Perfetto and chrome://tracing.
//
//   {"traceEvents": [{"ph": "X", "pid": 0, "tid": 1, "name": "all-reduce", "ts": 12.5, "dur": 3.1}, ..]}
//
// A process is a rank, a thread one of its streams. Times are microseconds in the file and seconds
// here.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace weft::formats {

struct TraceEvent {
  std::string name;
  std::string category;  // "compute", "communicate"
  std::int32_t process = 0, thread = 0;
  double begin = 0, seconds = 0;
  std::vector<std::pair<std::string, std::string>> facts = {};  // shown when the event is selected
};

struct TraceName {
  std::int32_t process = 0;
  std::int32_t thread = -1;  // -1: the process itself
  std::string name;
};

struct Trace {
  std::vector<TraceName> names;
  std::vector<TraceEvent> events;
};

std::string print_trace_json(const Trace& trace);

}  // namespace weft::formats
