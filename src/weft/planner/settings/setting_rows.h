// weft/planner/settings/setting_rows.h -- rows of the table of settings that are alike but for the field they set.
//
//   training_number<&train::TrainingOptions::beta1, Range::share>("beta1", "decay of Adam's first moment")
//
// Included by settings.cpp only.
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

// What a plain number of the training options may be.
enum class Range : std::uint8_t { share, not_negative };

template <double train::TrainingOptions::*kField, Range kRange>
Status set_training(Settings& settings, const language::syntax::Value& value) {
  constexpr bool kShare = kRange == Range::share;
  WEFT_TRY(given, number_within(value, 0, kShare ? 1 : 1e300,
                                kShare ? "a number from 0 to 1" : "a number that is not negative"));
  settings.training.*kField = given;
  return {};
}

// The row of one of them.
template <double train::TrainingOptions::*kField, Range kRange>
constexpr SettingSpec training_number(std::string_view name, std::string_view summary) {
  return {name, summary, Decides::model, set_training<kField, kRange>,
          [](const Settings& settings) { return fmt::format("{}", settings.training.*kField); }};
}

// A whole number of the running options.
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

// A share of the running options: from 0 to 1.
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

// A name that a template can have.
template <std::size_t kSize>
struct SettingName {
  consteval SettingName(const char (&given)[kSize]) { std::copy_n(given, kSize, text); }
  constexpr operator std::string_view() const { return {text, kSize - 1}; }
  char text[kSize] = {};
};

// Whether or not, of the running options.
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

// A time of the running options; 0 is none.
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

// A file of the running options; '' is none.
template <std::string RunOptions::*kField>
constexpr SettingSpec running_file(std::string_view name, std::string_view summary,
                                   Decides decides = Decides::nothing) {
  return {name, summary, decides,
          [](Settings& settings, const language::syntax::Value& value) -> Status {
            if (value.kind != language::syntax::ValueKind::text)
              return user_error("expected the name of a file",
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
