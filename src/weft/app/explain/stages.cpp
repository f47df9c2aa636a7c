#include "weft/app/explain/stages.h"

#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "weft/base/units.h"

namespace weft::explain {
namespace {

using Was = search::StageReport::Was;

// Empty if the cost is unchanged: such a rewrite enables another one.
std::string print_change(double seconds) {
  if (std::abs(seconds) < 1e-12) return {};
  return (seconds < 0 ? "-" : "+") + print_seconds(std::abs(seconds));
}

}  // namespace

Section stages_section(std::span<const search::StageReport> reports, bool timed) {
  Section section{"Stages of the planner",
                  {{"stage"},
                   {"nodes", Align::right, Fit::whole, 1},
                   {"step", Align::right},
                   {"memory", Align::right},
                   {"tried", Align::right, Fit::whole, 2},
                   {"spent", Align::right, Fit::whole, 1},
                   {"what it did", Align::left, Fit::wrap}}};
  section.option = "STAGES";
  for (const search::StageReport& report : reports) {
    if (report.was == Was::not_needed) continue;
    const bool ran = report.was == Was::run;
    section.rows.push_back(
        {std::string(report.stage),
         ran && report.nodes > 0 ? print_exact(static_cast<std::int64_t>(report.nodes)) : "",
         ran ? print_seconds(report.seconds) : "",
         ran && report.peak_bytes > 0 ? print_bytes(report.peak_bytes) : "",
         report.tried > 0 ? print_exact(report.tried) : "", ran && timed ? print_seconds(report.took) : "",
         !ran && report.said.empty() ? "off" : report.said});
  }
  return section;
}

nlohmann::ordered_json stages_json(std::span<const search::StageReport> reports) {
  auto json = nlohmann::ordered_json::array();
  for (const search::StageReport& report : reports) {
    if (report.was == Was::not_needed) continue;
    nlohmann::ordered_json row = {{"stage", report.stage}};
    if (report.was == Was::off) {
      row["off"] = true;
      if (!report.said.empty()) row["said"] = report.said;
    } else {
      row.update({{"nodes", report.nodes},
                  {"seconds", report.seconds},
                  {"changed", report.changed},
                  {"said", report.said}});
      if (report.peak_bytes > 0) row["bytes"] = report.peak_bytes;
      if (report.tried > 0) row["tried"] = report.tried;
      row["seconds_spent"] = report.took;
    }
    json.push_back(std::move(row));
  }
  return json;
}

Section trail_section(std::span<const search::Step> trail) {
  Section section{"", {{"rule"}, {"change", Align::right}, {"replaced", Align::left, Fit::wrap}}};
  for (const search::Step& step : trail)
    section.rows.push_back(
        {step.rule, print_change(step.change), fmt::format("{}", fmt::join(step.replaced, ", "))});
  return section;
}

nlohmann::ordered_json trail_json(std::span<const search::Step> trail) {
  auto json = nlohmann::ordered_json::array();
  for (const search::Step& step : trail)
    json.push_back({{"rule", step.rule}, {"replaced", step.replaced}, {"seconds", step.change}});
  return json;
}

}  // namespace weft::explain
