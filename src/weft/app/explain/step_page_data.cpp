#include "weft/app/explain/step_page_data.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "weft/predict/cost/step_costs.h"

namespace weft::explain {
namespace {

using Json = nlohmann::ordered_json;

// A string table: stores each text once and refers to it by number.
class Strings {
 public:
  std::size_t number(std::string text) {
    const auto [found, added] = numbers_.emplace(std::move(text), texts_.size());
    if (added) texts_.push_back(found->first);
    return found->second;
  }
  const Json& texts() const { return texts_; }

 private:
  std::map<std::string, std::size_t> numbers_;
  Json texts_ = Json::array();
};

std::int64_t nanoseconds(double seconds) {
  constexpr double kMost = 9e15;  // JavaScript numbers are exact up to this
  return std::isfinite(seconds) ? std::llround(std::clamp(seconds * 1e9, -kMost, kMost)) : 0;
}

// The lanes of one timeline in display order: compute first, then communication.
class Lanes {
 public:
  explicit Lanes(const PageTimeline& timeline) : program_(*timeline.program) {
    for (std::size_t t = 0; t < task_count(timeline); ++t)
      if (program_.units[program_.tasks[t].unit].stream == 0)
        workers_.emplace(timeline.timeline.tasks[t].worker, 0);
    for (auto& [worker, lane] : workers_) {
      lane = names_.size();
      names_.push_back(workers_.size() == 1 ? "compute" : fmt::format("worker {}", worker));
    }
    computing_ = names_.size();
    names_.insert(names_.end(), program_.streams.begin() + 1, program_.streams.end());
    if (timeline.passes.empty()) return;
    passes_ = static_cast<int>(names_.size());
    names_.push_back("passes");
  }

  std::size_t of(const program::Task& task, int worker) const {
    const std::uint32_t stream = program_.units[task.unit].stream;
    return stream > 0 ? computing_ + stream - 1 : workers_.at(worker);
  }
  const std::vector<std::string>& names() const { return names_; }
  std::size_t computing() const { return computing_; }
  int passes() const { return passes_; }  // -1: none

 private:
  const program::Program& program_;
  std::map<int, std::size_t> workers_;
  std::vector<std::string> names_;
  std::size_t computing_ = 0;
  int passes_ = -1;
};

// Columns for the program's units, followed by the passes as further units.
Json unit_columns(const PageTimeline& timeline, Strings& strings) {
  const program::Program& program = *timeline.program;
  Json names = Json::array(), wheres = Json::array(), kinds = Json::array(), results = Json::array();
  for (const program::Unit& unit : program.units) {
    names.push_back(strings.number(describe(program, unit)));
    wheres.push_back(strings.number(where(program, unit)));
    kinds.push_back(static_cast<int>(kind_of(unit)));
    std::string result;
    if (!unit.nodes.empty())
      result = print(program.graph->type(program.graph->result(unit.nodes.back())), program.graph->symbols());
    results.push_back(strings.number(std::move(result)));
  }
  const bool chunks =
      std::ranges::any_of(timeline.passes, [](const PagePass& one) { return one.pass.chunk > 0; });
  for (const PagePass& one : timeline.passes) {
    names.push_back(strings.number(one.updates ? "gradient sums and update" : print(one.pass, chunks)));
    wheres.push_back(strings.number(one.updates ? "" : fmt::format("micro-batch {}", one.pass.micro_batch)));
    kinds.push_back(static_cast<int>(kind_of(one)));
    results.push_back(strings.number(std::string()));
  }
  return {{"name", std::move(names)},
          {"where", std::move(wheres)},
          {"kind", std::move(kinds)},
          {"result", std::move(results)}};
}

Json timeline_data(const PageTimeline& timeline, std::size_t most_tasks, Strings& strings) {
  const program::Program& program = *timeline.program;
  const Lanes lanes(timeline);
  const std::vector<std::uint32_t> drawn = drawn_tasks(timeline, most_tasks);
  std::vector<bool> is_critical(program.tasks.size());
  for (const std::uint32_t task : timeline.critical)
    if (task < is_critical.size()) is_critical[task] = true;

  Json units = Json::array(), begins = Json::array(), lengths = Json::array(), lane = Json::array();
  Json bytes = Json::array(), critical = Json::array();
  for (const std::uint32_t t : drawn) {
    const program::Task& task = program.tasks[t];
    const program::TaskTime& time = timeline.timeline.tasks[t];
    if (is_critical[t]) critical.push_back(units.size());
    units.push_back(task.unit);
    begins.push_back(nanoseconds(time.begin));
    lengths.push_back(std::max<std::int64_t>(0, nanoseconds(time.end) - nanoseconds(time.begin)));
    lane.push_back(lanes.of(task, time.worker));
    bytes.push_back(static_cast<std::int64_t>(bytes_of(program, task)));
  }
  for (std::size_t i = 0; i < timeline.passes.size(); ++i) {
    const PagePass& pass = timeline.passes[i];
    units.push_back(program.units.size() + i);
    begins.push_back(nanoseconds(pass.begin));
    lengths.push_back(std::max<std::int64_t>(0, nanoseconds(pass.end) - nanoseconds(pass.begin)));
    lane.push_back(lanes.passes());
    bytes.push_back(0);
  }
  Json when = Json::array(), alive = Json::array();
  for (const auto& [second, amount] : timeline.memory) {
    when.push_back(nanoseconds(second));
    alive.push_back(std::isfinite(amount) ? std::round(amount) : 0.0);
  }
  return {{"name", name_of(timeline)},
          {"measured", timeline.measured},
          {"lanes", lanes.names()},
          {"computing", lanes.computing()},
          {"passes", lanes.passes()},
          {"units", unit_columns(timeline, strings)},
          {"unit", std::move(units)},
          {"begin", std::move(begins)},
          {"length", std::move(lengths)},
          {"lane", std::move(lane)},
          {"bytes", std::move(bytes)},
          {"critical", std::move(critical)},
          {"memory", {{"when", std::move(when)}, {"bytes", std::move(alive)}}}};
}

// The predicted timeline to compare a measured rank with; -1 if there is none.
int counterpart(std::span<const PageTimeline> timelines, const PageTimeline& measured) {
  if (!measured.measured || measured.ranks.empty()) return -1;
  for (std::size_t i = 0; i < timelines.size(); ++i)
    if (!timelines[i].measured && std::ranges::count(timelines[i].ranks, measured.ranks.front()) > 0)
      return static_cast<int>(i);
  return -1;
}

}  // namespace

std::string_view name(BarKind kind) {
  constexpr std::string_view kNames[kBarKinds] = {"matrix product",  "rows",
                                                  "operator kernel", "copy",
                                                  "all-reduce",      "reduce-scatter",
                                                  "all-gather",      "all-to-all",
                                                  "broadcast",       "permute",
                                                  "forward",         "backward",
                                                  "weights",         "gradient sums and update"};
  return kNames[static_cast<std::size_t>(kind)];
}

BarKind kind_of(const program::Unit& unit) {
  using Move = program::Exchange::Kind;
  if (std::holds_alternative<program::MatrixProduct>(unit.kernel)) return BarKind::product;
  if (std::holds_alternative<program::RowLoop>(unit.kernel)) return BarKind::rows;
  if (std::holds_alternative<program::OperatorCall>(unit.kernel) ||
      std::holds_alternative<program::Updates>(unit.kernel))
    return BarKind::call;
  const auto* exchange = std::get_if<program::Exchange>(&unit.kernel);
  if (exchange == nullptr) return BarKind::copy;
  switch (exchange->kind) {
    case Move::all_reduce: return BarKind::all_reduce;
    case Move::reduce_scatter: return BarKind::reduce_scatter;
    case Move::all_gather: return BarKind::all_gather;
    case Move::all_to_all: return BarKind::all_to_all;
    case Move::halo: return BarKind::permute;  // between neighbours
    case Move::send:
    case Move::receive: return BarKind::permute;  // between stages
    case Move::broadcast_from: return BarKind::broadcast;
    case Move::permute_ranks: break;
  }
  return BarKind::permute;
}

BarKind kind_of(const PagePass& pass) {
  if (pass.updates) return BarKind::update;
  switch (pass.pass.kind) {
    case pipeline::Kind::forward: return BarKind::forward;
    case pipeline::Kind::backward:
    case pipeline::Kind::whole_backward: return BarKind::backward;
    case pipeline::Kind::weight: break;
  }
  return BarKind::weight;
}

std::string name_of(const PageTimeline& timeline) {
  const std::string ranks = name_ranks(timeline.ranks);
  return timeline.place.empty() ? ranks : fmt::format("{}, {}", ranks, timeline.place);
}

std::string name_ranks(std::span<const std::int32_t> ranks) {
  if (ranks.empty()) return "no rank";
  if (ranks.size() == 1) return fmt::format("rank {}", ranks.front());
  bool adjacent = true;
  for (std::size_t i = 1; i < ranks.size(); ++i) adjacent = adjacent && ranks[i] == ranks[i - 1] + 1;
  if (adjacent) return fmt::format("ranks {}-{}", ranks.front(), ranks.back());
  constexpr std::size_t kNamed = 4;
  const std::size_t named = std::min(ranks.size(), kNamed);
  std::string text = fmt::format("ranks {}", fmt::join(ranks.first(named), ", "));
  return ranks.size() > named ? text + fmt::format(" and {} more", ranks.size() - named) : text;
}

std::string where(const program::Program& program, const program::Unit& unit) {
  if (unit.nodes.empty()) return {};
  const plan::Node& node = program.graph->node(unit.nodes.back());
  return node.label.valid() ? program.graph->path(node.scope, node.label) : std::string();
}

double bytes_of(const program::Program& program, const program::Task& task) {
  if (const auto* exchange = std::get_if<program::Exchange>(&program.units[task.unit].kernel))
    return static_cast<double>(cost::message_bytes(*exchange));
  double bytes = 0;
  for (const auto* extents : {&task.reads, &task.writes})
    for (const program::Extent& extent : *extents) bytes += static_cast<double>(extent.end - extent.begin);
  return bytes;
}

std::size_t task_count(const PageTimeline& timeline) {
  return std::min(timeline.program->tasks.size(), timeline.timeline.tasks.size());
}

std::vector<std::uint32_t> drawn_tasks(const PageTimeline& timeline, std::size_t most) {
  std::vector<std::uint32_t> tasks(task_count(timeline));
  std::iota(tasks.begin(), tasks.end(), 0u);
  if (tasks.size() <= most) return tasks;
  const auto length = [&](std::uint32_t t) {
    const double seconds = timeline.timeline.tasks[t].end - timeline.timeline.tasks[t].begin;
    return std::isfinite(seconds) ? seconds : 0;
  };
  std::ranges::stable_sort(tasks, std::ranges::greater{}, length);
  tasks.resize(most);
  std::ranges::sort(tasks);
  return tasks;
}

std::string print_data(std::span<const PageTimeline> timelines, std::size_t most_tasks_each) {
  Strings strings;
  Json rows = Json::array();
  for (const PageTimeline& timeline : timelines) {
    rows.push_back(timeline_data(timeline, most_tasks_each, strings));
    rows.back()["beside"] = counterpart(timelines, timeline);
  }
  Json kinds = Json::array();
  for (std::size_t k = 0; k < kBarKinds; ++k) kinds.push_back(name(static_cast<BarKind>(k)));
  const Json data = {
      {"kinds", std::move(kinds)}, {"strings", strings.texts()}, {"timelines", std::move(rows)}};
  // Escapes '<', because a name may contain "</script>".
  std::string text;
  for (const char letter : data.dump(-1, ' ', false, Json::error_handler_t::replace))
    if (letter == '<')
      text += "\\u003c";
    else
      text += letter;
  return text;
}

}  // namespace weft::explain
