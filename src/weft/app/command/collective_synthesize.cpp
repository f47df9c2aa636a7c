// weft collective synthesize: trees for a topology, as a checked and simulated program.
#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "weft/app/command/collective.h"
#include "weft/app/explain/tree_plot.h"
#include "weft/app/session/program_file.h"
#include "weft/app/session/reply.h"
#include "weft/app/session/sketched.h"
#include "weft/app/session/synthesized.h"
#include "weft/base/file.h"
#include "weft/base/units.h"
#include "weft/collectives/check/check.h"
#include "weft/collectives/synthesis/all_to_all.h"
#include "weft/collectives/synthesis/without.h"
#include "weft/formats/collective_source.h"
#include "weft/planner/settings/duration.h"
#include "weft/predict/sim/collective/run_parameters.h"
#include "weft/predict/sim/collective/tuned_program.h"

namespace weft::command {
namespace {

using Clock = std::chrono::steady_clock;

double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

struct Asked {
  collective::Kind kind = collective::Kind::all_gather;
  cluster::Topology whole, left;
  synthesis::Deadline deadline;
};

Result<Asked> prepare(const CollectiveSynthesize& request) {
  if (request.optimal != "bandwidth")
    return user_error(fmt::format("unknown kind of optimum: {}", request.optimal), "bandwidth or time");
  Asked asked;
  WEFT_TRY(kind, collective::parse_kind(request.collective));
  asked.kind = kind;
  if (!request.time_limit.empty()) {
    const std::optional<double> seconds = planner::read_duration(request.time_limit);
    if (!seconds || !(*seconds > 0))
      return user_error(fmt::format("expected a time limit, found {}", request.time_limit),
                        "for example: '10 s'");
    asked.deadline = synthesis::Deadline::after(*seconds);
  }
  std::int32_t chunks = 0;  // set by a sketch; unused, since the trees determine it
  WEFT_TRY(found, session::find_sketched(request.cluster, request.sketch, chunks));
  asked.whole = std::move(found);
  asked.left = asked.whole;
  for (const std::string& lost : request.without) {
    WEFT_TRY(left, synthesis::without(asked.left, lost));
    asked.left = std::move(left);
  }
  return asked;
}

std::string as_line(const nlohmann::ordered_json& json) {
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

// The message for a written file. MSCCL++ JSON cannot store the paths the program was simulated on.
Result<std::string> written(const std::string& path, const collective::Program& program,
                            const cluster::Topology& topology) {
  const auto each_block = [](auto& of, auto visit) {
    for (auto& rank : of.ranks)
      for (auto& block : rank.blocks) visit(block);
  };
  bool asks = false;
  each_block(program, [&](const collective::Threadblock& block) { asks = asks || !block.links.empty(); });
  const std::string text = fmt::format("{}: written, checked\n", path);
  if (!asks || !path.ends_with(".json")) return text;
  collective::Program shortest = program;
  each_block(shortest, [](collective::Threadblock& block) { block.links.clear(); });
  WEFT_TRY(seconds, session::simulated_seconds(shortest, topology, session::kSimulatedBytes));
  return text + fmt::format(
                    "note: this format cannot store the links of connections; over shortest paths it attains "
                    "{:.3f} GB/s\n",
                    static_cast<double>(session::kSimulatedBytes) / seconds / 1e9);
}

Result<std::string> answer_all_to_all(const CollectiveSynthesize& request, const Asked& asked) {
  const Clock::time_point start = Clock::now();
  WEFT_TRY(found, session::synthesize_all_to_all(asked.left, asked.deadline));
  const double seconds = since(start);
  if (!request.to.empty()) {
    if (!found.made)
      return user_error(fmt::format("no program is made for this many devices: {}", asked.left.devices),
                        "use at most 64; without -o, weft prints the bound");
    WEFT_TRY_STATUS(session::write_program(request.to, found.made->program));
  }
  std::optional<double> before;
  if (!request.without.empty()) {
    WEFT_TRY(old, synthesis::bound_all_to_all(asked.whole, asked.deadline));
    before = old.bound;
  }
  if (request.format == session::Format::text) {
    std::string text = print(found, asked.left);
    if (before)
      text += fmt::format("before    {:9.3f} GB/s, {:.1f} % lost\n", *before / 1e9,
                          100 * (1 - found.bound / *before));
    if (request.to.empty()) return text;
    WEFT_TRY(line, written(request.to, found.made->program, asked.left));
    return text + line;
  }
  const auto or_null = [](bool is, auto value) {
    return is ? nlohmann::ordered_json(value) : nlohmann::ordered_json(nullptr);
  };
  nlohmann::ordered_json json{{"collective", "all_to_all"}, {"ranks", asked.left.devices}, {"unit", "GB/s"}};
  json["optimum"] = found.bound / 1e9;
  json["flow"] = found.flow / 1e9;
  json["attained"] = or_null(found.made.has_value(), found.made ? found.made->attained / 1e9 : 0);
  if (before) {
    json["before"] = *before / 1e9;
    json["lost"] = 1 - found.bound / *before;
  }
  json["seconds"] = seconds;
  json["checked"] = found.made.has_value();
  json["program"] = or_null(!request.to.empty(), request.to);
  return as_line(json);
}

Result<std::string> answer_rings(const CollectiveSynthesize& request, const Asked& asked) {
  const Clock::time_point start = Clock::now();
  WEFT_TRY(best, synthesis::bound_forest(asked.left, asked.kind, request.root, asked.deadline));
  WEFT_TRY(rings, session::synthesize_rings(asked.left, asked.kind, asked.deadline));
  const double seconds = since(start);
  WEFT_TRY_STATUS(session::write_rings(request.to, rings));
  const std::size_t count = rings.graph.channels.size();
  if (request.format == session::Format::text)
    return fmt::format(
        "{} on {}, {} ranks, {} ring{}\noptimum   {:9.3f} GB/s\nrings     {:9.3f} GB/s, {:.1f} % of it\n"
        "attained  {:9.3f} GB/s, {:.1f} % of it, simulated at 1 GB\n{}: written, read back\n",
        collective::name(asked.kind), asked.left.name, asked.left.devices, count, count == 1 ? "" : "s",
        best.optimum / 1e9, rings.forest.planned / 1e9, 100 * rings.forest.planned / best.optimum,
        rings.made.attained / 1e9, 100 * rings.made.attained / best.optimum, request.to);
  nlohmann::ordered_json json{{"collective", collective::name(asked.kind)}, {"ranks", asked.left.devices}};
  json["unit"] = "GB/s";
  json["optimum"] = best.optimum / 1e9;
  json["planned"] = rings.forest.planned / 1e9;
  json["attained"] = rings.made.attained / 1e9;
  json["rings"] = count;
  json["seconds"] = seconds;
  json["checked"] = true;
  json["program"] = request.to;
  return as_line(json);
}

Result<std::string> answer(const CollectiveSynthesize& request) {
  WEFT_TRY(asked, prepare(request));
  if (request.to.ends_with(".graph.xml")) return answer_rings(request, asked);
  if (asked.kind == collective::Kind::all_to_all) return answer_all_to_all(request, asked);
  const Clock::time_point start = Clock::now();
  WEFT_TRY(forest, synthesis::grow_forest(asked.left, asked.kind, request.root, asked.deadline));
  const double seconds = since(start);
  std::optional<double> before;
  if (!request.without.empty()) {
    WEFT_TRY(old, synthesis::bound_forest(asked.whole, asked.kind, request.root, asked.deadline));
    before = old.optimum;
  }
  // With thousands of devices the trees are the answer. A program is made only if requested or if
  // the check is fast.
  const Clock::time_point second = Clock::now();
  std::optional<session::Synthesized> made;
  if (forest.trees > 0 &&
      (sim::hops_of(forest, static_cast<double>(forest.trees)) <= sim::kMostHops || !request.to.empty())) {
    WEFT_TRY(found, session::synthesize_program(asked.left, forest, asked.deadline));
    made = std::move(found);
  }
  if (!made && !request.to.empty())
    return user_error(fmt::format("too many devices that are not alike: found {}", forest.ranks),
                      "use at most 256; without -o, weft prints the optimum");
  if (made && !request.to.empty()) {
    WEFT_TRY_STATUS(session::write_program(request.to, made->program));
  }
  const explain::TreePlot plot{fmt::format("{} on {}: {:.1f} GB/s", collective::name(asked.kind),
                                           asked.left.name, forest.optimum / 1e9)};
  const std::vector<synthesis::Tree>& drawn = forest.down.empty() ? forest.up : forest.down;
  if (!request.plot.empty() && drawn.empty())
    return user_error("there are no trees to draw", "use at most 256 devices that are not alike");
  if (!request.plot.empty() && !request.plot.ends_with(".svg"))
    return user_error(fmt::format("unknown file format: {}", request.plot), "use .svg");
  if (!request.plot.empty())
    WEFT_TRY_STATUS(write_file_atomically(request.plot, explain::draw_trees(drawn, plot)));
  if (request.format == session::Format::text) {
    std::string text = print(forest, asked.left, made, before) +
                       (request.plot.empty() ? "" : "\n" + explain::print_trees(drawn, plot));
    if (!made || request.to.empty()) return text;
    WEFT_TRY(line, written(request.to, made->program, asked.left));
    return text + line;
  }

  nlohmann::ordered_json json;
  json["collective"] = collective::name(asked.kind);
  json["ranks"] = forest.ranks;
  json["unit"] = "GB/s";
  json["optimum"] = forest.optimum / 1e9;
  json["planned"] = forest.planned / 1e9;
  json["attained"] = made ? nlohmann::ordered_json(made->attained / 1e9) : nlohmann::ordered_json(nullptr);
  json["trees"] = session::trees_of_root(forest);
  json["bottleneck"] = session::bottleneck_names(forest, asked.left);
  if (forest.switch_root >= 0) {
    json["in_network"] = asked.left.nodes[static_cast<std::size_t>(forest.switch_root)].name;
    json["without_switches"] = forest.without_switches / 1e9;
  }
  if (before) {
    json["before"] = *before / 1e9;
    json["lost"] = 1 - forest.optimum / *before;
  }
  json["seconds"] = seconds;
  json["program_seconds"] = since(second);
  json["checked"] = made.has_value();
  json["program"] =
      made && !request.to.empty() ? nlohmann::ordered_json(request.to) : nlohmann::ordered_json(nullptr);
  return as_line(json);
}

}  // namespace

session::Reply run(const CollectiveSynthesize& request) { return session::to_reply(answer(request)); }

}  // namespace weft::command
