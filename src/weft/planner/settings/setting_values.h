// weft/planner/settings/setting_values.h -- what a setting is given, read as what it wants to be.
//
// All fail at the value's place where it is of another kind, or out of its range.
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

// A quantity, also as a string: SET memory_limit = '40 GiB'.
Result<double> quantity(const language::syntax::Value& value, Dimension wanted);

// `range`: in words, "a number from 0 to 1".
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

// Where `automatic` is 0 and `off` is nothing: whether it was one of these words.
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
// `stated`: what is neither.
template <class Number, class Print>
std::string print_by_word(const std::optional<Number>& setting, const Print& stated) {
  return !setting ? "off" : *setting == 0 ? "automatic" : stated(*setting);
}
inline std::string print_quoted_bytes(double bytes) { return "'" + print_bytes(bytes) + "'"; }

// '1.2 GB/s, 30 us', or '' for what is measured.
Result<std::optional<measure::Network>> network_of(const language::syntax::Value& value);
// '3h50m', '230 min', 13800 s, '03:50:00' as batch systems have it.
Result<double> time_of(const language::syntax::Value& value, std::string_view name);
// Names between commas. A plan that no stage spreads would run nowhere, so that one stays.
Result<std::vector<std::string>> stages_to_leave_out(const language::syntax::Value& value);

}  // namespace weft::planner
