#include "weft/session/simulate.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "weft/base/file.h"
#include "weft/base/nearest.h"
#include "weft/base/units.h"
#include "weft/explain/table.h"
#include "weft/formats/astra_config.h"
#include "weft/formats/chakra.h"
#include "weft/formats/trace_json.h"
#include "weft/session/reply.h"
#include "weft/session/trace.h"
#include "weft/sim/trace/trace_run.h"

namespace weft::session {
namespace {

using Json = nlohmann::ordered_json;

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
  return user_error(fmt::format("unknown wires: {}", text),
                    hint.empty() ? "cut-through, store-and-forward or uncontended" : hint);
}

// Ranks that do the same take the same: one line for them all, in order of the first.
struct Alike {
  sim::RankTotals totals;
  std::vector<std::size_t> ranks;
};

std::vector<Alike> group_alike(const sim::TraceRun& run) {
  std::vector<Alike> groups;
  std::map<std::tuple<double, double, double>, std::size_t> known;
  for (std::size_t r = 0; r < run.ranks.size(); ++r) {
    const sim::RankTotals& totals = run.ranks[r];
    const auto [found, added] = known.emplace(
        std::tuple(totals.seconds, totals.compute_seconds, totals.communication_seconds), groups.size());
    if (added) groups.push_back({totals, {}});
    groups[found->second].ranks.push_back(r);
  }
  return groups;
}

std::string ranks_text(const std::vector<std::size_t>& ranks) {
  if (ranks.size() == 1) return fmt::format("{}", ranks[0]);
  if (ranks.back() - ranks.front() + 1 == ranks.size())
    return fmt::format("{} to {}", ranks.front(), ranks.back());
  return fmt::format("{} and {} alike", ranks[0], ranks.size() - 1);
}

std::string to_text(const sim::ExecutionTrace& trace, const sim::TraceRun& run, double wall) {
  std::string text = fmt::format("{} on {} rank{}\n", print_seconds(run.seconds), run.ranks.size(),
                                 run.ranks.size() == 1 ? "" : "s");
  using explain::Align;
  explain::Table table({{"rank", Align::left},
                        {"time", Align::right},
                        {"computes", Align::right},
                        {"communicates", Align::right},
                        {"exposed", Align::right}});
  for (const auto& [totals, ranks] : group_alike(run))
    table.add({ranks_text(ranks), print_seconds(totals.seconds), print_seconds(totals.compute_seconds),
               print_seconds(totals.communication_seconds), print_seconds(totals.exposed_seconds)});
  text += table.print();
  text += fmt::format("{} nodes, {} collectives of {} shapes; {} events in {}: {} a second\n",
                      print_exact(run.nodes), print_exact(run.collectives), print_exact(run.shapes),
                      print_exact(run.events), print_seconds(wall),
                      print_count(static_cast<double>(run.events) / std::max(wall, 1e-9)));
  if (run.stands_for > run.events)
    text += fmt::format("they stand for {}: what all ranks do alike is simulated on one\n",
                        print_exact(run.stands_for));
  for (const std::string& note : trace.notes) text += note + "\n";
  return text;
}

std::string to_json(const sim::ExecutionTrace& trace, const sim::TraceRun& run, double wall) {
  Json ranks = Json::array();
  for (const sim::RankTotals& totals : run.ranks)
    ranks.push_back({{"seconds", totals.seconds},
                     {"compute_seconds", totals.compute_seconds},
                     {"communication_seconds", totals.communication_seconds},
                     {"exposed_communication_seconds", totals.exposed_seconds}});
  const Json json = {{"seconds", run.seconds},
                     {"ranks", std::move(ranks)},
                     {"nodes", run.nodes},
                     {"collectives", run.collectives},
                     {"shapes", run.shapes},
                     {"events", run.events},
                     {"stands_for_events", run.stands_for},
                     {"wall_seconds", wall},
                     {"events_per_second", static_cast<double>(run.events) / std::max(wall, 1e-9)},
                     {"notes", trace.notes}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
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
  if (!request.timeline.empty()) WEFT_TRY_STATUS(write_trace(request.timeline, timeline_of(trace, run)));
  return request.format == Format::json ? to_json(trace, run, wall) : to_text(trace, run, wall);
}

}  // namespace

Reply run(const Simulate& request) { return to_reply(answer(request)); }

}  // namespace weft::session
