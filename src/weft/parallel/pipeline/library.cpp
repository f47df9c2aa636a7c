#include "weft/parallel/pipeline/library.h"

#include <cctype>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "weft/base/check.h"
#include "weft/base/nearest.h"
#include "weft/parallel/pipeline/synthesized.h"

namespace weft {

std::span<const EmbeddedFile> embedded_schedules();

namespace pipeline {
namespace {

// Names in papers and other programs.
constexpr std::pair<std::string_view, std::string_view> kOtherNames[] = {
    {"1f1b", "one_f_one_b"},
    {"1f1b_i", "interleaved_one_f_one_b"},
    {"interleaved", "interleaved_one_f_one_b"},
    {"interleaved_1f1b", "interleaved_one_f_one_b"},
    {"eager_1f1b", "eager_one_f_one_b"},
    {"warm_1f1b", "warm_one_f_one_b"},
    {"dapple", "warm_one_f_one_b"},
    {"bfs", "breadth_first"},
    {"zbh1", "zb_h1"},
    {"zbh2", "zb_h2"},
    {"zbv", "zb_v"},
    {"vhalf", "v_half"},
    {"vmin", "v_min"},
    {"dualpipev", "dualpipe_v"}};

}  // namespace

Result<std::vector<ScheduleText>> parse_library(std::span<const EmbeddedFile> files) {
  std::vector<ScheduleText> schedules;
  for (const EmbeddedFile& file : files) {
    auto parsed = parse_schedule(file.text);
    if (!parsed.ok()) {
      Error error = std::move(parsed).error();
      error.message = fmt::format("{}: {}", file.path, error.message);
      error.text = std::make_shared<const std::string>(file.text);
      return error;
    }
    schedules.push_back(std::move(parsed).value());
  }
  return schedules;
}

const std::vector<ScheduleText>& shipped_schedules() {
  static const std::vector<ScheduleText> kSchedules = [] {
    auto parsed = parse_library(embedded_schedules());
    WEFT_CHECK(parsed.ok(), parsed.ok() ? "" : parsed.error().message);
    return std::move(parsed).value();
  }();
  return kSchedules;
}

Result<const ScheduleText*> find_schedule(std::string_view name) {
  std::string plain;
  for (const char letter : name)
    plain += letter == '-' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  for (const auto& [other, own] : kOtherNames)
    if (plain == other) plain = own;
  if (is_synthesized(plain)) return find_synthesized(plain);
  std::vector<std::string_view> names;
  for (const ScheduleText& schedule : shipped_schedules()) {
    if (schedule.name == plain) return &schedule;
    names.push_back(schedule.name);
  }
  for (const auto& [other, own] : kOtherNames) names.push_back(other);
  const std::string hint = did_you_mean(name, names);
  return user_error(fmt::format("unknown schedule: {}", name),
                    hint.empty() ? "weft schedule list names them" : hint);
}

}  // namespace pipeline
}  // namespace weft
