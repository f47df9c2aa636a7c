// weft/runtime/run/json_number.h -- strict conversion of JSON numbers to integers and enums.
//
// For numbers from other programs and from files. The library's own conversions accept 1.5 and true
// as 1, and truncate values that do not fit.
#pragma once
#include <cstdint>
#include <optional>
#include <utility>

#include "weft/base/result.h"

namespace weft::run {

// Empty unless the value is an integer from `low` to `high`.
template <class Json>
std::optional<std::int64_t> read_whole(const Json& value, std::int64_t low, std::int64_t high) {
  if (!value.is_number_integer()) return std::nullopt;
  if (value.is_number_unsigned() && !std::in_range<std::int64_t>(value.template get<std::uint64_t>()))
    return std::nullopt;
  const auto whole = value.template get<std::int64_t>();
  if (whole < low || whole > high) return std::nullopt;
  return whole;
}

// Empty unless the number is a value of the enum, whose largest is `last`.
template <class Enum, class Json>
std::optional<Enum> read_enum(const Json& value, Enum last) {
  const auto whole = read_whole(value, 0, static_cast<std::int64_t>(last));
  if (!whole) return std::nullopt;
  return static_cast<Enum>(*whole);
}

// Any value other than 1 (user) is read as a world fault, so an error cannot become a success.
template <class Json>
Fault read_fault(const Json& value) {
  return read_whole(value, 1, 1) ? Fault::user : Fault::world;
}

}  // namespace weft::run
