#include "weft/app/command/partition.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "weft/app/session/reply.h"
#include "weft/base/check.h"
#include "weft/base/file.h"
#include "weft/base/number.h"
#include "weft/base/units.h"
#include "weft/formats/json_node.h"
#include "weft/formats/placement_json.h"
#include "weft/formats/profile_text.h"
#include "weft/formats/stage_costs_json.h"
#include "weft/parallel/partition/hybrid.h"
#include "weft/parallel/partition/placement.h"
#include "weft/parallel/partition/steady.h"

namespace weft::command {
namespace {

constexpr std::int64_t kMostPartitionBytes = std::int64_t{64} << 20;
constexpr std::int32_t kMostPartitionDevices = 10'000, kMostStepMicroBatches = 1 << 20;
constexpr std::string_view kDefaultRate = "25 Gb/s";

// The result for one file. `lines` is the text output.
struct Cut {
  formats::Json json;
  std::vector<std::string> lines;
};

Result<double> read_amount(std::string_view option, std::string_view text, Dimension dimension) {
  auto read = parse_quantity(text);
  const bool plain = read.ok() && dimension == Dimension::bytes && read->dimension == Dimension::count;
  if (!read.ok() || !(plain || read->dimension == dimension) || !(read->value > 0) ||
      !std::isfinite(read->value))
    return user_error(fmt::format("{}: expected {}, found '{}'", option, name(dimension), text),
                      fmt::format("such as {}", example(dimension)));
  return read->value;
}

// The option's value, or `otherwise` from the file if the option is empty.
Result<double> amount_or(std::string_view option, std::string_view text, Dimension dimension,
                         double otherwise) {
  if (text.empty()) return otherwise;
  return read_amount(option, text, dimension);
}

// "4@10 GB/s, 2@1 GB/s", or a single rate for all `devices`.
Result<std::vector<partition::Level>> read_levels(std::string_view text, std::int32_t devices) {
  std::vector<partition::Level> levels;
  if (text.find('@') == std::string_view::npos) {
    WEFT_TRY(rate, read_amount("--topology", text, Dimension::bytes_per_second));
    return std::vector<partition::Level>{{devices, rate}};
  }
  constexpr std::size_t kMostLevels = 8;
  for (bool more = true; more;) {
    const std::size_t comma = text.find(',');
    more = comma != std::string_view::npos;
    std::string_view level = text.substr(0, comma);
    if (more) text.remove_prefix(comma + 1);
    while (level.starts_with(' ')) level.remove_prefix(1);
    const std::size_t at = level.find('@');
    const auto machines = read_number<std::int32_t>(level.substr(0, at), 1, kMostPartitionDevices);
    if (at == std::string_view::npos || !machines || levels.size() == kMostLevels)
      return user_error(fmt::format("--topology: expected machines@bandwidth, found '{}'", level),
                        "for example 4@10GB/s,2@1GB/s, innermost first");
    WEFT_TRY(rate, read_amount("--topology", level.substr(at + 1), Dimension::bytes_per_second));
    levels.push_back({*machines, rate});
  }
  return levels;
}

template <class Nodes>
formats::Json ids_of(const std::vector<std::int32_t>& places, const Nodes& nodes) {
  formats::Json ids = formats::Json::array();
  for (const std::int32_t place : places) ids.push_back(nodes[static_cast<std::size_t>(place)].id);
  return ids;
}

// Recomputes the cost of every answer: a different cost is a bug in the search.
Status agree(double cost, const Result<double>& judged) {
  if (!judged.ok()) return judged.error();
  WEFT_CHECK(std::abs(*judged - cost) <= 1e-6 * std::max(cost, 1e-12),
             fmt::format("the split costs {}, not {}", *judged, cost));
  return {};
}

formats::Json head(std::string_view format, double cost, std::string_view unit, bool exact,
                   std::int32_t ideals) {
  return {{"format", format}, {"cost", cost},     {"unit", unit},
          {"exact", exact},   {"ideals", ideals}, {"stages", formats::Json::array()}};
}

Result<Cut> cut_placement(const Partition& request, const formats::JsonNode& top) {
  WEFT_TRY(placement, formats::read_placement(top));
  if (request.devices > 0) placement.accelerators = request.devices;
  WEFT_TRY(memory, amount_or("--memory", request.memory, Dimension::bytes, placement.memory));
  placement.memory = memory;
  WEFT_TRY(answer, partition::place(placement));
  WEFT_TRY_STATUS(agree(answer.cost, partition::judge(placement, answer.stages)));
  Cut cut{head("dnn-placement", answer.cost, "time unit", answer.exact, answer.ideals), {}};
  for (const partition::PlacementStage& stage : answer.stages) {
    const std::string_view device = stage.cpu ? "cpu" : "accelerator";
    cut.json["stages"].push_back(
        {{"device", device}, {"load", stage.load}, {"nodes", ids_of(stage.nodes, placement.nodes)}});
    cut.lines.push_back(
        fmt::format("{:<12}{:>6} nodes   load {:.6g}", device, stage.nodes.size(), stage.load));
  }
  return cut;
}

Result<Cut> cut_stage_costs(const Partition& request, const formats::JsonNode& top,
                            const formats::Json& value) {
  WEFT_TRY(hybrid, formats::read_stage_costs(top, value));
  if (request.devices > 0) hybrid.devices = request.devices;
  if (request.micro_batches > 0) hybrid.micro_batches = request.micro_batches;
  WEFT_TRY(memory, amount_or("--memory", request.memory, Dimension::bytes, hybrid.memory));
  hybrid.memory = memory;
  WEFT_TRY(rate, amount_or("--topology", request.topology, Dimension::bytes_per_second, hybrid.bandwidth));
  hybrid.bandwidth = rate;
  WEFT_TRY(answer, partition::cut_hybrid(hybrid));
  WEFT_TRY_STATUS(agree(answer.cost, partition::judge(hybrid, answer.stages)));
  Cut cut{head("piper", answer.cost, "s", answer.exact, answer.ideals), {}};
  for (const partition::HybridStage& stage : answer.stages) {
    formats::Json ways = formats::Json::array();
    for (std::size_t i = 0; i < stage.nodes.size(); ++i)
      for (const auto& degree : hybrid.nodes[static_cast<std::size_t>(stage.nodes[i])].degrees)
        if (degree.devices == stage.degree)
          ways.push_back(degree.ways[static_cast<std::size_t>(stage.ways[i])].name);
    cut.json["stages"].push_back({{"nodes", ids_of(stage.nodes, hybrid.nodes)},
                                  {"replicas", stage.replicas},
                                  {"tensor_degree", stage.degree},
                                  {"ways", std::move(ways)}});
    cut.lines.push_back(fmt::format("{:>6} nodes on {} replicas of {} devices", stage.nodes.size(),
                                    stage.replicas, stage.degree));
  }
  return cut;
}

void add_steady(const std::vector<partition::SteadyStage>& stages, const partition::Profile& profile,
                std::size_t depth, formats::Json& list, std::vector<std::string>& lines) {
  for (const partition::SteadyStage& stage : stages) {
    formats::Json one = {{"nodes", ids_of(stage.nodes, profile.nodes)}, {"replicas", stage.replicas}};
    lines.push_back(fmt::format("{}{:>6} nodes on {} machines", std::string(2 * depth, ' '),
                                stage.nodes.size(), stage.replicas));
    if (!stage.inner.empty()) {
      one["stages"] = formats::Json::array();
      add_steady(stage.inner, profile, depth + 1, one["stages"], lines);
    }
    list.push_back(std::move(one));
  }
}

Result<Cut> cut_in_steady_state(const Partition& request, const partition::Profile& whole) {
  const partition::Profile profile = partition::without_inputs(whole);
  WEFT_TRY(levels, read_levels(request.topology.empty() ? kDefaultRate : request.topology,
                               request.devices > 0 ? request.devices : 16));
  WEFT_TRY(answer, partition::cut_steady(profile, levels, request.straight));
  WEFT_TRY_STATUS(agree(answer.cost, partition::judge(profile, levels, answer.stages)));
  Cut cut{head("profile, steady state", answer.cost * 1000, "ms", answer.exact, answer.ideals), {}};
  cut.json["stage_time_s"] = answer.cost;
  add_steady(answer.stages, profile, 0, cut.json["stages"], cut.lines);
  return cut;
}

Result<Cut> cut_profile(const Partition& request, std::string_view text) {
  if (!request.memory.empty()) return user_error("--memory: a profile has no memory sizes");
  if (request.micro_batches > 0)
    return user_error("--micro-batches: a profile is cut for the steady state, expected none");
  WEFT_TRY(profile, formats::read_profile(text));
  return cut_in_steady_state(request, profile);
}

Result<Cut> cut_text(const Partition& request, const std::string& text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string::npos || text[first] != '{') {
    if (formats::looks_like_profile(text)) return cut_profile(request, text);
    return user_error("expected a graph in JSON or a profile, found neither",
                      "weft help partition lists the formats");
  }
  WEFT_TRY(json, formats::parse_json(text));
  const formats::JsonNode top(json);
  if (top.has("mbsInBatch")) return cut_stage_costs(request, top, json);
  if (!top.has("maxFPGAs"))
    return user_error("expected maxFPGAs or mbsInBatch, found neither",
                      "weft help partition lists the formats");
  if (!request.topology.empty() || request.micro_batches > 0)
    return user_error("a graph with maxFPGAs does not support --topology or --micro-batches");
  return cut_placement(request, top);
}

Result<std::string> answer(const Partition& request) {
  if (request.devices < 0 || request.devices > kMostPartitionDevices)
    return user_error(
        fmt::format("--devices: expected 1 to {}, found {}", kMostPartitionDevices, request.devices));
  if (request.micro_batches < 0 || request.micro_batches > kMostStepMicroBatches)
    return user_error(fmt::format("--micro-batches: expected 1 to {}, found {}", kMostStepMicroBatches,
                                  request.micro_batches));
  WEFT_TRY(text, read_file(request.file, kMostPartitionBytes));
  const auto begin = std::chrono::steady_clock::now();
  auto cut = cut_text(request, text);
  if (!cut.ok()) {
    Error error = cut.error();
    error.message = fmt::format("{}: {}", request.file, error.message);
    return error.span.known() ? session::in_text(text, std::move(error)) : error;
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (request.format == session::Format::json) {
    cut->json["seconds"] = seconds;
    // Ids in a profile can contain arbitrary bytes.
    return cut->json.dump(-1, ' ', false, formats::Json::error_handler_t::replace) + "\n";
  }
  std::string shown =
      fmt::format("{:.6g} {}, {}\n", cut->json["cost"].get<double>(), cut->json["unit"].get<std::string>(),
                  cut->json["exact"].get<bool>() ? "the optimal split" : "the smallest found");
  for (std::size_t i = 0; i < cut->lines.size(); ++i)
    shown += fmt::format("stage {:<4}{}\n", i, cut->lines[i]);
  return shown +
         fmt::format("{} ideals, {}\n", cut->json["ideals"].get<std::int32_t>(), print_seconds(seconds));
}

}  // namespace

session::Reply run(const Partition& request) { return session::to_reply(answer(request)); }

}  // namespace weft::command
