// weft/runtime/exec/left_flights.h -- what a rank said of its device when that failed, for `weft doctor` to read later.
//
// One text in ~/.cache/weft/flights: that of the last failure of this user's. A job that ended cannot be asked.
#pragma once
#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>

namespace weft::exec {

struct LeftFlights {
  pid_t process = 0;  // that left them
  std::string time;   // when, "2026-01-31 14:05:00 UTC"
  std::string text;   // as DeviceFlights::print() has it
};

// Where they cannot be kept, nothing is.
void leave_flights(std::string_view text);
std::optional<LeftFlights> find_left_flights();

}  // namespace weft::exec
