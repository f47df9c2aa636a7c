#include "weft/app/explain/stages.h"

#include <fmt/format.h>

#include "weft/app/explain/table.h"
#include "weft/base/units.h"

namespace weft::explain {

using Was = search::StageReport::Was;

std::string stage_table(std::span<const search::StageReport> reports, std::size_t width) {
  Table table({{"stage"}, {"nodes", Align::right}, {"a step"}, {"what it did", Align::left, Fit::wrap}});
  bool spread = false, first = true;
  for (const search::StageReport& report : reports) {
    if (report.was == Was::not_needed) continue;
    spread |= report.stage == "distribute";
    if (report.was == Was::off)
      table.add({std::string(report.stage), "", "", report.said.empty() ? "off" : report.said});
    else if (!report.changed && !first)
      table.add({std::string(report.stage), "", "same as above", report.said});
    else
      table.add({std::string(report.stage), print_exact(static_cast<std::int64_t>(report.nodes)),
                 print_seconds(report.seconds) + (spread ? "" : " at best"), report.said});
    first = false;
  }
  return table.print(width);
}

std::string print_text(const StagesExplanation& explanation) {
  Table table({{"stage"},
               {"step", Align::right},
               {"memory", Align::right},
               {"tried", Align::right},
               {"spent", Align::right},
               {"what it did", Align::left, Fit::wrap}});
  for (const search::StageReport& report : explanation.stages) {
    if (report.was == Was::not_needed) continue;
    const bool ran = report.was == Was::run;
    table.add({std::string(report.stage), ran ? print_seconds(report.seconds) : "",
               ran && report.peak_bytes > 0 ? print_bytes(report.peak_bytes) : "",
               report.tried > 0 ? print_exact(report.tried) : "", ran ? print_seconds(report.took) : "",
               !ran && report.said.empty() ? "off" : report.said});
  }
  return explanation.headline + "\n\n" + table.print(explanation.width) +
         fmt::format("\nplanning took {}\n", print_seconds(explanation.planning_seconds));
}

std::string print_json(const StagesExplanation& explanation) {
  nlohmann::ordered_json json = {{"headline", explanation.headline}};
  json["stages"] = stages_json(explanation.stages);
  std::size_t row = 0;
  for (const search::StageReport& report : explanation.stages) {
    if (report.was == Was::not_needed) continue;
    nlohmann::ordered_json& to = json["stages"][row++];
    if (report.was == Was::off) continue;
    if (report.peak_bytes > 0) to["bytes"] = report.peak_bytes;
    if (report.tried > 0) to["tried"] = report.tried;
    to["seconds_spent"] = report.took;
  }
  json["planning_seconds"] = explanation.planning_seconds;
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

nlohmann::ordered_json stages_json(std::span<const search::StageReport> reports) {
  auto json = nlohmann::ordered_json::array();
  for (const search::StageReport& report : reports) {
    if (report.was == Was::not_needed) continue;
    nlohmann::ordered_json row = {{"stage", report.stage}};
    if (report.was == Was::off) {
      row["off"] = true;
      if (!report.said.empty()) row["said"] = report.said;
    } else
      row.update({{"nodes", report.nodes},
                  {"seconds", report.seconds},
                  {"changed", report.changed},
                  {"said", report.said}});
    json.push_back(std::move(row));
  }
  return json;
}

nlohmann::ordered_json trail_json(std::span<const search::Step> trail) {
  auto json = nlohmann::ordered_json::array();
  for (const search::Step& step : trail)
    json.push_back({{"rule", step.rule}, {"replaced", step.replaced}, {"seconds", step.change}});
  return json;
}

}  // namespace weft::explain
