#include "weft/runtime/run/serialized_training.h"

#include <cstring>
#include <limits>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "weft/plan/graph/text.h"
#include "weft/plan/ops/operators.h"
#include "weft/plan/spmd/layouts.h"
#include "weft/runtime/run/algorithm_list.h"
#include "weft/runtime/run/json_number.h"

namespace weft::run {
namespace {

using nlohmann::json;

json print_options(const LocalRanksOptions& options) {
  return {{"ranks", options.ranks},
          {"transport", static_cast<int>(options.transport)},
          {"workers", options.workers},
          {"memory_limit", options.memory_limit},
          {"overlap", options.overlap},
          {"shared_memory", options.shared_memory},
          {"spills", options.spills},
          {"spill_folder", options.spill_folder},
          {"algorithms", print_algorithms(options.algorithms)},
          {"outer", {options.outer.rate, options.outer.momentum}}};
}

Error damaged() { return environment_error("the work sent to a rank is corrupted"); }

Result<LocalRanksOptions> read_options(const json& from) {
  LocalRanksOptions options;
  const auto ranks = read_whole(from.at("ranks"), 1, plan::kMostRanks);
  const auto transport = read_enum(from.at("transport"), comm::TransportKind::mixed);
  if (!ranks || !transport) return damaged();
  options.ranks = static_cast<std::int32_t>(*ranks);
  options.transport = *transport;
  options.workers = from.at("workers");
  options.memory_limit = from.at("memory_limit");
  options.overlap = from.at("overlap");
  options.shared_memory = from.at("shared_memory");
  options.spills = from.at("spills");
  options.spill_folder = from.at("spill_folder");
  WEFT_TRY(algorithms, read_algorithms(from.at("algorithms")));
  options.algorithms = std::move(algorithms);
  options.outer = {from.at("outer").at(0), from.at("outer").at(1)};
  return options;
}

template <class AnySchedule, class Visit>
void for_fields(AnySchedule& schedule, const Visit& visit) {
  visit("warmup", schedule.warmup);
  visit("first", schedule.first);
  visit("steps", schedule.steps);
  visit("end", schedule.end);
  visit("every", schedule.every);
  visit("factor", schedule.factor);
}

json print_schedule(const Schedule& schedule) {
  json written = {{"kind", name(schedule.kind)}};
  for_fields(schedule, [&](const char* key, const auto& field) { written[key] = field; });
  return written;
}

Result<Schedule> read_schedule(const json& from) {
  Schedule schedule;
  const auto kind = find_schedule(from.at("kind").get<std::string>());
  if (!kind) return damaged();
  schedule.kind = *kind;
  for_fields(schedule, [&](const char* key, auto& field) { from.at(key).get_to(field); });
  return schedule;
}

void append(std::vector<std::byte>& to, std::span<const std::byte> bytes) {
  to.insert(to.end(), bytes.begin(), bytes.end());
}

}  // namespace

std::vector<std::byte> print_training_part(const distribute::DistributedPlan& plan,
                                           const LocalRanksOptions& options, const std::string& feed,
                                           const Weights& start, std::int64_t first_step,
                                           const Schedule& schedule, const PartWatch& watch) {
  json header = {{"plan", plan::print(plan.graph)},
                 {"mesh", plan::print(plan.mesh)},
                 {"options", print_options(options)},
                 {"feed", feed},
                 {"first_step", first_step},
                 {"schedule", print_schedule(schedule)},
                 {"model", start.model},
                 {"step", start.step},
                 {"seed", start.seed},
                 {"sizes", start.sizes},
                 {"check_every", watch.check_every},
                 {"keep_every", watch.keep_every},
                 {"look_every", watch.look_every}};
  if (watch.measure_from) header["measure_from"] = *watch.measure_from;
  if (plan.time)
    header["time"] = {{"distribution", distribute::print(plan.time->distribution)},
                      {"position", plan.time->position}};
  std::size_t bytes = 0;
  json& tensors = header["tensors"] = json::array();
  for (const auto& [name, tensor] : start.tensors) {
    tensors.push_back({{"name", name},
                       {"dtype", plan::name(tensor.dtype)},
                       {"shape", tensor.shape},
                       {"bytes", tensor.bytes.size()}});
    bytes += tensor.bytes.size();
  }
  const std::string text = header.dump();
  const std::uint64_t size = text.size();
  std::vector<std::byte> part;
  part.reserve(sizeof size + text.size() + bytes);
  append(part, std::as_bytes(std::span(&size, 1)));
  append(part, std::as_bytes(std::span(text)));
  for (const auto& [name, tensor] : start.tensors) append(part, tensor.bytes);
  return part;
}

Result<SerializedTraining> read_training_part(std::span<const std::byte> bytes) try {
  std::uint64_t size = 0;
  if (bytes.size() < sizeof size) return damaged();
  std::memcpy(&size, bytes.data(), sizeof size);
  if (size > bytes.size() - sizeof size) return damaged();
  const auto text = bytes.subspan(sizeof size, size);
  const json header =
      json::parse(std::string_view(reinterpret_cast<const char*>(text.data()), text.size()), nullptr, false);
  if (!header.is_object()) return damaged();
  std::span<const std::byte> rest = bytes.subspan(sizeof size + size);

  WEFT_TRY(graph, plan::read(header.at("plan").get<std::string>(), ops::all()));
  WEFT_TRY(mesh, plan::read_mesh(header.at("mesh").get<std::string>()));
  WEFT_TRY(layouts, spmd::infer_layouts(graph, mesh));
  SerializedTraining part;
  part.plan.graph = std::move(graph);
  part.plan.mesh = std::move(mesh);
  part.plan.layouts = std::move(layouts);
  if (header.contains("time")) {
    WEFT_TRY(distribution,
             distribute::read_distribution(header["time"].at("distribution").get<std::string>()));
    part.plan.time = distribute::PipelineInfo{std::move(distribution), header["time"].at("position")};
    if (part.plan.time->position.size() != part.plan.graph.node_count()) return damaged();
  }
  WEFT_TRY(options, read_options(header.at("options")));
  part.options = std::move(options);
  part.feed = header.at("feed");
  part.first_step = header.at("first_step");
  WEFT_TRY(schedule, read_schedule(header.at("schedule")));
  part.schedule = schedule;
  if (header.contains("measure_from")) part.watch.measure_from = header["measure_from"].get<std::int64_t>();
  part.watch.check_every = header.at("check_every");
  part.watch.keep_every = header.at("keep_every");
  part.watch.look_every = header.at("look_every");
  part.start.model = header.at("model");
  part.start.step = header.at("step");
  part.start.seed = header.at("seed");
  part.start.sizes = header.at("sizes");
  for (const json& each : header.at("tensors")) {
    const auto dtype = plan::find_dtype(each.at("dtype").get<std::string>());
    const auto length = read_whole(each.at("bytes"), 0, static_cast<std::int64_t>(rest.size()));
    if (!dtype || !length) return damaged();
    std::int64_t expected = plan::size_in_bytes(*dtype);
    for (const json& dim : each.at("shape")) {
      const auto whole = read_whole(dim, 0, std::numeric_limits<std::int64_t>::max());
      if (!whole || __builtin_mul_overflow(expected, *whole, &expected)) return damaged();
    }
    if (expected != *length) return damaged();
    const auto held = rest.first(static_cast<std::size_t>(*length));
    rest = rest.subspan(held.size());
    part.start.tensors.emplace(each.at("name"), Tensor{*dtype, each.at("shape"), {held.begin(), held.end()}});
  }
  return part;
} catch (const json::exception&) {
  return damaged();
}

}  // namespace weft::run
