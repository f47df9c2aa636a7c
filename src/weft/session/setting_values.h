// weft/session/setting_values.h -- what a setting is given, read as what it wants to be.
//
// All fail at the value's place where it is of another kind, or out of its range.
//
// Included by the files of session/ only.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/base/units.h"
#include "weft/language/syntax.h"
#include "weft/measure/job_network.h"

namespace weft::session {

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

// '1.2 GB/s, 30 us', or '' for what is measured.
Result<std::optional<measure::Network>> network_of(const language::syntax::Value& value);
// '3h50m', '230 min', 13800 s, '03:50:00' as batch systems have it.
Result<double> wall_time_of(const language::syntax::Value& value);
// Names between commas. A plan that no stage spreads would run nowhere, so that one stays.
Result<std::vector<std::string>> stages_to_leave_out(const language::syntax::Value& value);

}  // namespace weft::session
