#include "weft/app/command/simulate.h"

#include <chrono>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "weft/app/explain/simulated_trace.h"
#include "weft/app/session/reply.h"
#include "weft/app/session/trace.h"
#include "weft/base/file.h"
#include "weft/base/nearest.h"
#include "weft/base/units.h"
#include "weft/formats/astra_config.h"
#include "weft/formats/chakra.h"
#include "weft/formats/trace_json.h"
#include "weft/predict/sim/trace/trace_run.h"

namespace weft::command {
namespace {

constexpr std::int64_t kMostConfigBytes = 1 << 20;

template <class Parse>
auto read_config(const std::string& path, Parse parse) -> decltype(parse("")) {
  WEFT_TRY(text, read_file(path, kMostConfigBytes));
  auto parsed = parse(text);
  if (!parsed.ok()) {
    Error error = parsed.error();
    error.message = fmt::format("{}: {}", path, error.message);
    return error;
  }
  return parsed;
}

Result<sim::WireModel> read_wires(std::string_view text) {
  constexpr std::string_view kNames[] = {"cut-through", "store-and-forward", "uncontended"};
  for (std::size_t i = 0; i < std::size(kNames); ++i)
    if (text == kNames[i]) return static_cast<sim::WireModel>(i);
  const std::string hint = did_you_mean(text, kNames);
  return user_error(fmt::format("unknown link model: {}", text),
                    hint.empty() ? "cut-through, store-and-forward or uncontended" : hint);
}

formats::Trace timeline_of(const sim::ExecutionTrace& trace, const sim::TraceRun& run) {
  formats::Trace timeline;
  constexpr std::string_view kThreads[] = {"CPU", "GPU", "communication", "receives"};
  std::set<std::pair<std::int32_t, std::int32_t>> named;
  for (const sim::NodeTime& time : run.timeline) {
    const sim::TraceNode& node = trace.ranks[static_cast<std::size_t>(time.rank)].nodes[time.node];
    using Kind = sim::TraceNode::Kind;
    const bool computes = node.kind == Kind::compute;
    const std::int32_t thread = node.kind == Kind::receive ? 3 : node.on_cpu ? 0 : computes ? 1 : 2;
    if (named.emplace(time.rank, -1).second)
      timeline.names.push_back({time.rank, -1, fmt::format("rank {}", time.rank)});
    if (named.emplace(time.rank, thread).second)
      timeline.names.push_back({time.rank, thread, std::string(kThreads[thread])});
    formats::TraceEvent event{node.name,  computes ? "compute" : "communicate",
                              time.rank,  thread,
                              time.begin, time.end - time.begin};
    if (node.bytes > 0) event.facts.emplace_back("bytes", print_bytes(static_cast<double>(node.bytes)));
    timeline.events.push_back(std::move(event));
  }
  return timeline;
}

Result<std::string> answer(const Simulate& request) {
  WEFT_TRY(wires, read_wires(request.wires));
  WEFT_TRY(network, read_config(request.network, formats::parse_astra_network));
  sim::TraceSystem system;
  if (!request.system.empty()) {
    WEFT_TRY(read, read_config(request.system, formats::parse_astra_system));
    system = std::move(read);
  }
  system.wires = wires;
  WEFT_TRY(trace, formats::read_chakra(request.traces));
  const auto begin = std::chrono::steady_clock::now();
  WEFT_TRY(run, sim::run_trace(trace, network, system, {!request.timeline.empty(), request.exact}));
  const double wall = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (!request.timeline.empty())
    WEFT_TRY_STATUS(session::write_trace(request.timeline, timeline_of(trace, run)));
  return request.format == session::Format::json ? explain::print_json(run, trace.notes, wall)
                                                 : explain::print_text(run, trace.notes, wall);
}

}  // namespace

session::Reply run(const Simulate& request) { return session::to_reply(answer(request)); }

}  // namespace weft::command
