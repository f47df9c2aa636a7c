// weft/planner/settings/setting_rows.h -- templates for similar rows of the table of settings.
//
//   training_number<&train::TrainingOptions::beta1, Range::share>("beta1", "decay of Adam's first moment")
//
// Included only by settings.cpp.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "weft/planner/settings/setting_values.h"
#include "weft/planner/settings/settings.h"

namespace weft::planner {

// Range of a number among the training options.
enum class Range : std::uint8_t { share, not_negative };

template <double train::TrainingOptions::*kField, Range kRange>
Status set_training(Settings& settings, const language::syntax::Value& value) {
  constexpr bool kShare = kRange == Range::share;
  WEFT_TRY(given, number_within(value, 0, kShare ? 1 : 1e300,
                                kShare ? "a number from 0 to 1" : "a number that is not negative"));
  settings.training.*kField = given;
  return {};
}

// A row for a number of the training options.
template <double train::TrainingOptions::*kField, Range kRange>
constexpr SettingSpec training_number(std::string_view name, std::string_view summary) {
  return {name, summary, Decides::model, set_training<kField, kRange>,
          [](const Settings& settings) { return fmt::format("{}", settings.training.*kField); }};
}

// A row for a whole number of the run options.
template <std::int64_t RunOptions::*kField>
constexpr SettingSpec running_count(std::string_view name, std::string_view summary,
                                    Decides decides = Decides::nothing) {
  return {name, summary, decides,
          [](Settings& settings, const language::syntax::Value& value) -> Status {
            constexpr double kMost = 1e15;
            WEFT_TRY(given, whole_within(value, 0, kMost, "a whole number that is not negative"));
            settings.running.*kField = static_cast<std::int64_t>(given);
            return {};
          },
          [](const Settings& settings) { return fmt::format("{}", settings.running.*kField); }};
}

// A row for a share of the run options, from 0 to 1.
template <double RunOptions::*kField>
constexpr SettingSpec running_share(std::string_view name, std::string_view summary,
                                    Decides decides = Decides::nothing) {
  return {name, summary, decides,
          [](Settings& settings, const language::syntax::Value& value) -> Status {
            WEFT_TRY(given, number_within(value, 0, 1, "a number from 0 to 1"));
            settings.running.*kField = given;
            return {};
          },
          [](const Settings& settings) { return fmt::format("{}", settings.running.*kField); }};
}

// A row for a text of the run options.
template <std::string RunOptions::*kField>
constexpr SettingSpec running_text(std::string_view name, std::string_view summary,
                                   Decides decides = Decides::nothing) {
  return {name, summary, decides,
          [](Settings& settings, const language::syntax::Value& value) -> Status {
            if (value.kind != language::syntax::ValueKind::text)
              return user_error("expected text in quotes", {}, value.span);
            settings.running.*kField = value.text;
            return {};
          },
          [](const Settings& settings) { return fmt::format("'{}'", settings.running.*kField); }};
}

// A name usable as a template argument.
template <std::size_t kSize>
struct SettingName {
  consteval SettingName(const char (&given)[kSize]) { std::copy_n(given, kSize, text); }
  constexpr operator std::string_view() const { return {text, kSize - 1}; }
  char text[kSize] = {};
};

// A row for a boolean of the run options.
template <SettingName kName, bool RunOptions::*kField>
constexpr SettingSpec running_truth(std::string_view summary, Decides decides = Decides::nothing) {
  return {kName, summary, decides,
          [](Settings& settings, const language::syntax::Value& value) -> Status {
            WEFT_TRY(given, truth(value, kName));
            settings.running.*kField = given;
            return {};
          },
          [](const Settings& settings) { return std::string(settings.running.*kField ? "true" : "false"); }};
}

// A row for a duration of the run options; 0: none.
template <SettingName kName, double RunOptions::*kField>
constexpr SettingSpec running_time(std::string_view summary, Decides decides = Decides::nothing) {
  return {kName, summary, decides,
          [](Settings& settings, const language::syntax::Value& value) -> Status {
            WEFT_TRY(given, time_of(value, kName));
            settings.running.*kField = given;
            return {};
          },
          [](const Settings& settings) {
            const double seconds = settings.running.*kField;
            return seconds == 0 ? std::string("0") : fmt::format("{} s", seconds);
          }};
}

// A row for a file of the run options; '': none.
template <std::string RunOptions::*kField>
constexpr SettingSpec running_file(std::string_view name, std::string_view summary,
                                   Decides decides = Decides::nothing) {
  return {name, summary, decides,
          [](Settings& settings, const language::syntax::Value& value) -> Status {
            if (value.kind != language::syntax::ValueKind::text)
              return user_error("expected a file name",
                                kField == &RunOptions::checkpoint
                                    ? "for example: checkpoint = 'digits.safetensors'"
                                    : "for example: checkpoint_best = 'best.safetensors'",
                                value.span);
            settings.running.*kField = value.text;
            return {};
          },
          [](const Settings& settings) { return fmt::format("'{}'", settings.running.*kField); }};
}

}  // namespace weft::planner
