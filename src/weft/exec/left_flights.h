// weft/exec/left_flights.h -- what a rank said of its device when that failed, for `weft doctor` to read later.
//
// One text in ~/.cache/weft/flights: that of the last failure of this user's. A job that ended cannot be asked.
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace weft::exec {

// With the time before it. Where it cannot be kept, nothing is.
void leave_flights(std::string_view text);
std::optional<std::string> find_left_flights();

}  // namespace weft::exec
