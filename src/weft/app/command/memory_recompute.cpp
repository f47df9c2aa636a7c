#include <cmath>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "weft/app/command/memory.h"
#include "weft/app/session/reply.h"
#include "weft/base/check.h"
#include "weft/base/file.h"
#include "weft/base/nearest.h"
#include "weft/base/units.h"
#include "weft/formats/json_node.h"
#include "weft/formats/recompute_json.h"
#include "weft/program/memory/recompute.h"
#include "weft/program/memory/recompute_replay.h"

namespace weft::command {
namespace {

constexpr std::int64_t kMostGraphBytes = std::int64_t{64} << 20;
using memory::RecomputeGraph;

Result<RecomputeGraph> graph_named(const std::vector<RecomputeGraph>& graphs, const std::string& name) {
  if (name.empty() && graphs.size() == 1) return graphs.front();
  std::vector<std::string_view> names;
  for (const RecomputeGraph& graph : graphs) {
    if (graph.name == name) return graph;
    names.emplace_back(graph.name);
  }
  if (name.empty())
    return user_error(fmt::format("expected --graph, because the file has {} graphs", graphs.size()),
                      fmt::format("they are {}", fmt::join(names, ", ")));
  const std::string hint = did_you_mean(name, names);
  return user_error(fmt::format("unknown graph: {}", name),
                    hint.empty() ? fmt::format("there are {}", fmt::join(names, ", ")) : hint);
}

// Prints 37, not 37.0.
formats::Json number_json(double value) {
  constexpr double kExact = 9007199254740992.0;  // 2^53
  if (std::floor(value) == value && std::abs(value) <= kExact) return static_cast<std::int64_t>(value);
  return value;
}

std::string show_steps(const std::vector<memory::RecomputeStep>& steps) {
  std::string text, line;
  for (const memory::RecomputeStep& step : steps) {
    const std::string word = memory::print(step);
    if (line.size() + word.size() + 3 > 100) text += line + "\n", line.clear();
    line += (line.empty() ? "  " : ", ") + word;
  }
  return text + line + "\n";
}

// "B 1 (conv1_2) holds 511,168: the input, x of conv1_1 and conv1_2, ..".
Result<std::string> why_so_much(const RecomputeGraph& graph,
                                const std::vector<memory::RecomputeStep>& steps) {
  WEFT_TRY(replayed, memory::replay(graph, steps));
  const memory::RecomputeStep& step = steps[replayed.peak_step];
  return fmt::format("{} ({}) holds {}: {}", memory::print(step),
                     graph.nodes[static_cast<std::size_t>(step.node)].name, print_exact(replayed.peak),
                     replayed.held);
}

Result<std::string> answer(const MemoryRecompute& request) {
  WEFT_TRY(text, read_file(request.file, kMostGraphBytes));
  const auto in_file = [&](Error error) {
    error.message = fmt::format("{}: {}", request.file, error.message);
    return error;
  };
  const auto graphs = formats::read_recompute_graphs(text);
  if (!graphs.ok()) return in_file(graphs.error());
  const auto graph = graph_named(*graphs, request.graph);
  if (!graph.ok()) return in_file(graph.error());
  const auto solved = memory::recompute(*graph, request.budget);
  if (!solved.ok()) return in_file(solved.error());
  const memory::Recomputation& found = *solved;
  formats::Json json = {
      {"feasible", found.feasible},         {"time", nullptr},        {"least_budget", found.least_budget},
      {"least_proven", found.least_proven}, {"proven", found.proven}, {"steps", formats::Json::array()}};
  if (!found.feasible) {
    WEFT_TRY(why, why_so_much(*graph, found.least_steps));
    if (request.format == session::Format::text)
      return user_error(fmt::format("{} needs a budget of at least {}, found {}", graph->name,
                                    print_exact(found.least_budget), print_exact(request.budget)),
                        why);
    json["reason"] = why;
    return json.dump(-1, ' ', false, formats::Json::error_handler_t::replace) + "\n";
  }
  // Replays every answer to verify it: a different cost is a solver bug.
  WEFT_TRY(replayed, memory::replay(*graph, found.steps));
  WEFT_CHECK(replayed.peak <= request.budget && std::abs(replayed.time - found.time) <= 1e-9 * found.time);
  double once = 0;
  for (const memory::RecomputeNode& node : graph->nodes) once += node.forward + node.backward;
  if (request.format == session::Format::json) {
    json["time"] = number_json(found.time);
    json["time_without_budget"] = number_json(once);
    json["peak"] = replayed.peak;
    for (const memory::RecomputeStep& step : found.steps) json["steps"].push_back(memory::print(step));
    return json.dump(-1, ' ', false, formats::Json::error_handler_t::replace) + "\n";
  }
  return fmt::format(
             "{} within {}: time {:.6g}, {}\n"
             "{:.2f} % over {:.6g} without recomputation; peak {}\n"
             "the smallest budget is {}{}\n",
             graph->name, print_exact(request.budget), found.time,
             found.proven ? "optimal" : "the smallest found", once > 0 ? (found.time / once - 1) * 100 : 0,
             once, print_exact(replayed.peak), print_exact(found.least_budget),
             found.least_proven ? "" : ", of those found") +
         show_steps(found.steps);
}

}  // namespace

session::Reply run(const MemoryRecompute& request) { return session::to_reply(answer(request)); }

}  // namespace weft::command
