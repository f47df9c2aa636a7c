// weft/planner/settings/setting_values.h -- read the values of settings.
//
// All functions fail at the value's position if it has another type or is out of range.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/base/units.h"
#include "weft/language/syntax.h"
#include "weft/runtime/measure/job_network.h"

namespace weft::planner {

// A quantity, possibly in a string: SET memory_limit = '40 GiB'.
Result<double> quantity(const language::syntax::Value& value, Dimension wanted);

// `range`: for the error, such as "a number from 0 to 1".
Result<double> number_within(const language::syntax::Value& value, double low, double high,
                             std::string_view range);
Result<double> whole_within(const language::syntax::Value& value, double low, double high,
                            std::string_view range);

Result<std::string_view> word_of(const language::syntax::Value& value,
                                 std::span<const std::string_view> words);

// `name`: of the setting.
Result<bool> truth(const language::syntax::Value& value, std::string_view name);
Status set_truth_or_automatic(std::optional<bool>& setting, const language::syntax::Value& value);
std::string print_truth_or_automatic(const std::optional<bool>& setting);

// Sets 0 for `automatic` and nothing for `off`. Whether the value was one of these words.
template <class Number>
bool set_by_word(std::optional<Number>& setting, const language::syntax::Value& value) {
  const bool is_word = value.kind == language::syntax::ValueKind::word;
  if (is_word && value.text == "automatic")
    setting = 0;
  else if (is_word && value.text == "off")
    setting = std::nullopt;
  else
    return false;
  return true;
}
// `stated`: prints other values.
template <class Number, class Print>
std::string print_by_word(const std::optional<Number>& setting, const Print& stated) {
  return !setting ? "off" : *setting == 0 ? "automatic" : stated(*setting);
}
inline std::string print_quoted_bytes(double bytes) { return "'" + print_bytes(bytes) + "'"; }

// '1.2 GB/s, 30 us', or '' to measure it.
Result<std::optional<measure::Network>> network_of(const language::syntax::Value& value);
// '3h50m', '230 min', 13800 s, or '03:50:00' as in batch systems.
Result<double> time_of(const language::syntax::Value& value, std::string_view name);
// Names separated by commas. The planner stage `distribute` cannot be skipped.
Result<std::vector<std::string>> stages_to_leave_out(const language::syntax::Value& value);

}  // namespace weft::planner
