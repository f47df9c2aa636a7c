// weft/app/explain/whole.h -- prints counts that are stored as doubles as integers.
//
// Work is counted in doubles, which are exact up to 2^53; larger counts stay rounded doubles.
#pragma once
#include <cstdint>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "weft/base/units.h"

namespace weft::explain {

constexpr double kExactUpTo = 9007199254740992.0;  // 2^53

inline nlohmann::ordered_json whole(double count) {
  if (count < kExactUpTo) return static_cast<std::int64_t>(count);
  return count;
}

inline std::string print_whole(double count) {
  return count < kExactUpTo ? print_exact(static_cast<std::int64_t>(count)) : fmt::format("{:.6g}", count);
}

}  // namespace weft::explain
