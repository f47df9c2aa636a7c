#include "weft/app/session/trace.h"

#include <algorithm>

#include <fmt/format.h>

#include "weft/app/explain/step_page_data.h"
#include "weft/base/file.h"
#include "weft/base/units.h"
#include "weft/predict/cost/step_costs.h"

namespace weft::session {
void add_rank(formats::Trace& trace, const program::Program& program, const program::Timeline& timeline,
              std::int32_t process, std::string name) {
  trace.names.push_back({process, -1, std::move(name)});
  trace.names.push_back({process, 0, "compute"});
  for (std::size_t stream = 1; stream < program.streams.size(); ++stream)
    trace.names.push_back(
        {process, static_cast<std::int32_t>(stream), "moves along " + program.streams[stream]});
  for (std::size_t t = 0; t < timeline.tasks.size() && t < program.tasks.size(); ++t) {
    const program::Unit& unit = program.units[program.tasks[t].unit];
    const program::TaskTime& time = timeline.tasks[t];
    formats::TraceEvent event{describe(program, unit), "compute", process, 0, time.begin,
                              time.end - time.begin};
    if (const auto* exchange = std::get_if<program::Exchange>(&unit.kernel)) {
      event.category = "communicate";
      event.thread = static_cast<std::int32_t>(unit.stream);
      event.facts.emplace_back("bytes", print_bytes(static_cast<double>(cost::message_bytes(*exchange))));
      event.facts.emplace_back("algorithm", print(exchange->algorithm));
    }
    if (std::string place = explain::where(program, unit); !place.empty())
      event.facts.emplace_back("in", std::move(place));
    trace.events.push_back(std::move(event));
  }
}

void add_passes(formats::Trace& trace, std::span<const pipeline::Pass> passes,
                std::span<const pipeline::Slot> slots, std::int32_t process, std::int32_t thread) {
  trace.names.push_back({process, thread, "passes"});
  const bool chunks = std::ranges::any_of(passes, [](const pipeline::Pass& pass) { return pass.chunk > 0; });
  for (std::size_t i = 0; i < passes.size(); ++i) {
    formats::TraceEvent event{print(passes[i], chunks),     "pass", process, thread, slots[i].begin,
                              slots[i].end - slots[i].begin};
    event.facts.emplace_back("micro-batch", fmt::format("{}", passes[i].micro_batch));
    trace.events.push_back(std::move(event));
  }
}

formats::Trace trace_of(const sim::Prediction& prediction) {
  formats::Trace trace;
  for (std::size_t c = 0; c < prediction.classes.size(); ++c)
    add_rank(trace, *prediction.classes[c].program, prediction.classes[c].timeline,
             static_cast<std::int32_t>(c), "predicted: " + explain::name_ranks(prediction.classes[c].ranks));
  return trace;
}

Status write_trace(const std::string& path, const formats::Trace& trace) {
  return write_file_atomically(path, print_trace_json(trace));
}

}  // namespace weft::session
