#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "weft/plan/graph/text.h"
#include "weft/plan/ops/operators.h"
#include "weft/planner/search/rewrite/region_plan.h"

namespace weft::search {
namespace {

constexpr std::string_view kPlan = "plan ";

std::string hexadecimal(double number) {
  char text[64];
  return {text, std::to_chars(text, text + sizeof text, number, std::chars_format::hex).ptr};
}

std::optional<double> parse_number(std::string_view text) {
  double number = 0;
  const auto [end, problem] =
      std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::hex);
  if (problem != std::errc() || end != text.data() + text.size() || !std::isfinite(number))
    return std::nullopt;
  return number;
}

std::vector<std::string_view> fields_of(std::string_view line) {
  std::vector<std::string_view> fields;
  for (std::size_t tab = line.find('\t'); tab != std::string_view::npos; tab = line.find('\t')) {
    fields.push_back(line.substr(0, tab));
    line.remove_prefix(tab + 1);
  }
  fields.push_back(line);
  return fields;
}

std::optional<Stopped> find_stopped(std::string_view text) {
  for (const Stopped stopped :
       {Stopped::saturated, Stopped::rewrite_limit, Stopped::node_limit, Stopped::time_limit})
    if (name(stopped) == text) return stopped;
  return std::nullopt;
}

bool read_line(std::span<const std::string_view> fields, RegionPlan& plan) {
  const std::string_view what = fields[0];
  if (what == "stopped" && fields.size() == 2) {
    const std::optional<Stopped> stopped = find_stopped(fields[1]);
    plan.stopped = stopped.value_or(Stopped::saturated);
    return stopped.has_value();
  }
  if (what == "seconds" && fields.size() == 3) {
    const std::optional<double> before = parse_number(fields[1]), after = parse_number(fields[2]);
    plan.seconds_before = before.value_or(0);
    plan.seconds_after = after.value_or(0);
    return before && after;
  }
  if (what == "step" && fields.size() >= 3) {
    const std::optional<double> change = parse_number(fields[2]);
    plan.trail.push_back({std::string(fields[1]), {fields.begin() + 3, fields.end()}, change.value_or(0)});
    return change.has_value();
  }
  return false;
}

}  // namespace

std::string print(const RegionPlan& plan) {
  std::string text = fmt::format("stopped\t{}\nseconds\t{}\t{}\n", name(plan.stopped),
                                 hexadecimal(plan.seconds_before), hexadecimal(plan.seconds_after));
  for (const Step& step : plan.trail) {
    text += fmt::format("step\t{}\t{}", step.rule, hexadecimal(step.change));
    for (const std::string& node : step.replaced) text += "\t" + node;
    text += '\n';
  }
  return text + plan::print(plan.plan);
}

std::optional<RegionPlan> parse_region_plan(std::string_view text) {
  RegionPlan plan;
  while (!text.starts_with(kPlan)) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos || !read_line(fields_of(text.substr(0, end)), plan))
      return std::nullopt;
    text.remove_prefix(end + 1);
  }
  Result<plan::Graph> graph = plan::read(text, ops::all());
  if (!graph.ok()) return std::nullopt;
  plan.plan = std::move(graph).value();
  return plan;
}

}  // namespace weft::search
