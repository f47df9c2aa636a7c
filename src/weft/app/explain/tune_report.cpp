#include "weft/app/explain/tune_report.h"

#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "weft/app/explain/table.h"
#include "weft/base/units.h"

namespace weft::explain {
namespace {

using explain::Align;
using Json = nlohmann::ordered_json;

// The fastest and second fastest algorithm at one size of a setting.
struct Row {
  const comm::Setting* setting;
  std::int64_t bytes;
  comm::Choice best, next;
};

std::vector<Row> rows_of(const measure::Tuned& tuned) {
  std::vector<Row> rows;
  for (const auto& [setting, candidates] : tuned.table.settings()) {
    std::map<std::int64_t, std::vector<std::string>> names;
    for (const comm::Candidate& candidate : candidates)
      for (const comm::TimePoint& time : candidate.times) names[time.bytes].push_back(candidate.name);
    for (auto& [bytes, allowed] : names) {
      Row row{&setting, bytes, tuned.table.choose(setting, bytes, allowed), {}};
      std::erase(allowed, row.best.algorithm);
      row.next = tuned.table.choose(setting, bytes, allowed);
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

std::string buffers(bool allocated) { return allocated ? "allocated" : "private"; }
std::string percent_of(double share) { return fmt::format("{:.1f} %", 100 * share); }

// Remarks on the measurement itself.
std::string remarks(const measure::Tuned& tuned) {
  std::string text;
  for (const std::string& dropped : tuned.dropped) text += fmt::format("left out: {}\n", dropped);
  if (4 * tuned.disturbed > tuned.times)
    text += fmt::format("other processes disturbed {} of {} times: try again when the machine is idle\n",
                        tuned.disturbed, tuned.times);
  if (tuned.skipped > 0)
    text += fmt::format("{} of {} sizes skipped for lack of time: raise --seconds\n", tuned.skipped,
                        tuned.skipped + tuned.measured);
  return text;
}

void add_remarks(Json& json, const measure::Tuned& tuned) {
  json["times"] = tuned.times;
  json["disturbed"] = tuned.disturbed;
  json["skipped"] = tuned.skipped;
  json["dropped"] = tuned.dropped;
}

std::string print_json(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Json to_json(const measure::TuneCheck& check) {
  return {{"predictions", check.predictions},
          {"median_error", check.median_error},
          {"choices", check.choices},
          {"median_cost", check.median_cost},
          {"mean_cost", check.mean_cost},
          {"worst_cost", check.worst_cost},
          {"worst", check.worst},
          {"as_run", check.as_run}};
}

std::vector<std::string> cells(const measure::TuneCheck& check) {
  return {fmt::to_string(check.predictions), percent_of(check.median_error), fmt::to_string(check.choices),
          percent_of(check.median_cost),     percent_of(check.mean_cost),    percent_of(check.worst_cost),
          percent_of(check.as_run)};
}

}  // namespace

std::string tuned_text(const measure::Tuned& tuned) {
  explain::Table table({{"collective"},
                        {"ranks", Align::right},
                        {"transport"},
                        {"buffers"},
                        {"size", Align::right},
                        {"fastest"},
                        {"time", Align::right},
                        {"next"},
                        {"time", Align::right}});
  for (const Row& row : rows_of(tuned)) {
    const bool alone = row.next.algorithm.empty();
    table.add({std::string(collective::name(row.setting->kind)), fmt::to_string(row.setting->ranks),
               row.setting->transport, buffers(row.setting->allocated),
               print_bytes(static_cast<double>(row.bytes)), row.best.algorithm,
               print_seconds(row.best.seconds), row.next.algorithm,
               alone ? "" : print_seconds(row.next.seconds)});
  }
  return table.print() + remarks(tuned);
}

std::string tuned_json(const measure::Tuned& tuned) {
  Json json;
  json["rows"] = Json::array();
  for (const Row& row : rows_of(tuned)) {
    Json one{{"collective", collective::name(row.setting->kind)},
             {"ranks", row.setting->ranks},
             {"hosts", row.setting->hosts},
             {"transport", row.setting->transport},
             {"buffers", buffers(row.setting->allocated)},
             {"bytes", row.bytes},
             {"algorithm", row.best.algorithm},
             {"seconds", row.best.seconds}};
    if (!row.next.algorithm.empty()) {
      one["next"] = row.next.algorithm;
      one["next_seconds"] = row.next.seconds;
    }
    json["rows"].push_back(std::move(one));
  }
  add_remarks(json, tuned);
  return print_json(json);
}

std::string check_text(const measure::Tuned& tuned, const measure::TuneChecks& checks) {
  explain::Table table({{"transport"},
                        {"ranks", Align::right},
                        {"buffers"},
                        {"times", Align::right},
                        {"median error", Align::right},
                        {"choices", Align::right},
                        {"median cost", Align::right},
                        {"mean", Align::right},
                        {"worst", Align::right},
                        {"as run", Align::right}});
  std::string worst;
  const auto add = [&](std::vector<std::string> row, const measure::TuneCheck& check) {
    for (std::string& cell : cells(check)) row.push_back(std::move(cell));
    table.add(std::move(row));
  };
  for (const measure::TuneCheckRow& row : checks.rows) {
    add({row.transport, fmt::to_string(row.ranks), buffers(row.allocated)}, row.check);
    if (!row.check.worst.empty())
      worst += fmt::format("worst choice over {}, {} ranks, {}: {}\n", row.transport, row.ranks,
                           buffers(row.allocated), row.check.worst);
  }
  if (checks.rows.size() > 1) add({"all", "", ""}, checks.all);
  return table.print() + "\n" + worst + remarks(tuned);
}

std::string check_json(const measure::Tuned& tuned, const measure::TuneChecks& checks) {
  Json json;
  json["rows"] = Json::array();
  for (const measure::TuneCheckRow& row : checks.rows) {
    Json one{{"transport", row.transport},
             {"ranks", row.ranks},
             {"hosts", row.hosts},
             {"buffers", buffers(row.allocated)}};
    one.update(to_json(row.check));
    json["rows"].push_back(std::move(one));
  }
  json["all"] = to_json(checks.all);
  add_remarks(json, tuned);
  return print_json(json);
}

}  // namespace weft::explain
