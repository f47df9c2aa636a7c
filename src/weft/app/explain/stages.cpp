#include "weft/app/explain/stages.h"

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
