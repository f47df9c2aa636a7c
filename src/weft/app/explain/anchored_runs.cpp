#include "weft/app/explain/anchored_runs.h"

#include <cmath>
#include <filesystem>
#include <map>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "weft/app/explain/table.h"
#include "weft/base/median.h"

namespace weft::explain {
namespace {

struct AnchoredErrors {
  std::size_t count = 0, closer = 0;
  double mean_without = 0, mean_with = 0, median_without = 0, median_with = 0;
};

std::optional<AnchoredErrors> errors_of(const std::vector<const AnchoredFile*>& files,
                                        AnchoredValue AnchoredRun::*value) {
  std::vector<double> without, with;
  AnchoredErrors made;
  for (const AnchoredFile* const file : files)
    for (const AnchoredRun& run : file->runs) {
      const AnchoredValue& of = run.*value;
      if (of.measured <= 0) continue;
      without.push_back(std::abs(of.without / of.measured - 1));
      with.push_back(std::abs(of.with / of.measured - 1));
      made.mean_without += without.back();
      made.mean_with += with.back();
      made.closer += with.back() < without.back();
    }
  if (without.empty()) return std::nullopt;
  made.count = without.size();
  made.mean_without /= static_cast<double>(made.count);
  made.mean_with /= static_cast<double>(made.count);
  made.median_without = median(std::move(without));
  made.median_with = median(std::move(with));
  return made;
}

std::string percent_of(double share) { return fmt::format("{:.1f} %", 100 * share); }

void add_file(Table& table, const std::string& name, const std::vector<const AnchoredFile*>& files) {
  std::size_t series = 0;
  for (const AnchoredFile* const file : files) series += file->series;
  std::vector<std::string> cells = {name, fmt::format("{}", series)};
  for (const auto value : {&AnchoredRun::seconds, &AnchoredRun::bytes}) {
    const auto errors = errors_of(files, value);
    cells.push_back(errors ? fmt::format("{}", errors->count) : "");
    cells.push_back(errors ? percent_of(errors->mean_without) : "");
    cells.push_back(errors ? percent_of(errors->mean_with) : "");
    if (value == &AnchoredRun::bytes) continue;
    cells.push_back(errors ? percent_of(errors->median_without) : "");
    cells.push_back(errors ? percent_of(errors->median_with) : "");
  }
  table.add(std::move(cells));
}

}  // namespace

std::string print_text(const std::vector<AnchoredFile>& files, bool rows, std::size_t width) {
  Table table({{"file", Align::left, Fit::cut},
               {"series", Align::right},
               {"runs", Align::right},
               {"mean error:\nwithout", Align::right},
               {"\nwith", Align::right},
               {"median:\nwithout", Align::right},
               {"\nwith", Align::right},
               {"peaks", Align::right},
               {"memory:\nwithout", Align::right},
               {"\nwith", Align::right}});
  std::vector<const AnchoredFile*> all;
  std::map<std::string, std::size_t> why;
  for (const AnchoredFile& file : files) {
    all.push_back(&file);
    add_file(table, std::filesystem::path(file.path).filename().string(), {&file});
    for (const auto& [id, reason] : file.refused) ++why[fmt::format("{}: {}", id, reason)];
  }
  if (all.size() > 1) add_file(table, "all", all);
  std::string out = "\nanchored: the smallest run of each series calibrates the stack for its other runs\n";
  out += table.print(width);
  if (rows) {
    Table each({{"row"},
                {"anchor"},
                {"measured s", Align::right},
                {"without", Align::right},
                {"with", Align::right}});
    for (const AnchoredFile& file : files)
      for (const AnchoredRun& run : file.runs)
        if (run.seconds.measured > 0)
          each.add({run.id, run.anchor, fmt::format("{:.3g}", run.seconds.measured),
                    fmt::format("{:+.1f} %", 100 * (run.seconds.without / run.seconds.measured - 1)),
                    fmt::format("{:+.1f} %", 100 * (run.seconds.with / run.seconds.measured - 1))});
    out += "\n" + each.print(width);
  }
  for (const auto& [reason, count] : why) out += wrap(fmt::format("not an anchor: {}", reason), width);
  return out;
}

std::string print_json(const AnchoredFile& file) {
  using AnchoredJson = nlohmann::json;
  AnchoredJson json = {
      {"series", file.series}, {"runs", AnchoredJson::array()}, {"refused", AnchoredJson::array()}};
  const auto add = [&](const char* name, AnchoredValue AnchoredRun::*value) {
    const auto errors = errors_of({&file}, value);
    if (!errors) return;
    json[name] = {{"runs", errors->count},
                  {"mean_error_without", errors->mean_without},
                  {"mean_error_with", errors->mean_with},
                  {"median_error_without", errors->median_without},
                  {"median_error_with", errors->median_with},
                  {"closer", errors->closer}};
  };
  add("time", &AnchoredRun::seconds);
  add("memory", &AnchoredRun::bytes);
  for (const AnchoredRun& run : file.runs)
    json["runs"].push_back({{"id", run.id},
                            {"anchor", run.anchor},
                            {"measured_seconds", run.seconds.measured},
                            {"seconds_without", run.seconds.without},
                            {"seconds_with", run.seconds.with},
                            {"measured_bytes", run.bytes.measured},
                            {"bytes_without", run.bytes.without},
                            {"bytes_with", run.bytes.with}});
  for (const auto& [id, why] : file.refused) json["refused"].push_back({{"id", id}, {"why", why}});
  return json.dump();
}

}  // namespace weft::explain
