// weft/app/explain/whole.h -- counts that are doubles, shown as the whole numbers they are.
//
// Work is counted in doubles, exact up to 2^53; beyond, a count stays a rounded double.
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
