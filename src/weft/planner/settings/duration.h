// weft/planner/settings/duration.h -- durations in the formats of people and batch systems.
//
//   '3h50m'   '3 h 50 min'   '90 s'   '1d 2h'   '03:50:00'   '45:00' (minutes and seconds)
#pragma once
#include <optional>
#include <string_view>

namespace weft::planner {

// In seconds; none if the text is not a duration.
std::optional<double> read_duration(std::string_view text);

}  // namespace weft::planner
