// weft/formats/value.h -- converts a number of a data file to its field's type.
//
//   std::int32_t label;
//   fit(3.0, label)    Misfit::none, label is 3
//   fit(3.5, label)    Misfit::not_whole
//   fit(3e9, label)    Misfit::out_of_range
//   fit(NAN, label)    Misfit::not_finite
#pragma once
#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <string_view>
#include <utility>

#include "weft/base/result.h"
#include "weft/formats/table.h"

namespace weft::formats {

enum class Misfit : std::uint8_t { none, not_a_number, not_finite, not_whole, out_of_range };

template <std::integral T>
Misfit fit(double found, T& value) {
  if (!std::isfinite(found)) return Misfit::not_finite;
  if (found != std::trunc(found)) return Misfit::not_whole;
  // The limits as doubles: the lowest value and one past the highest are both exact.
  constexpr double kLowest = static_cast<double>(std::numeric_limits<T>::min());
  if (found < kLowest || found >= -kLowest) return Misfit::out_of_range;
  value = static_cast<T>(found);
  return Misfit::none;
}

inline Misfit fit(double found, float& value) {
  if (!std::isfinite(found)) return Misfit::not_finite;
  value = static_cast<float>(found);
  return std::isfinite(value) ? Misfit::none : Misfit::out_of_range;
}

inline Misfit fit(double found, double& value) {
  if (!std::isfinite(found)) return Misfit::not_finite;
  value = found;
  return Misfit::none;
}

template <std::integral T>
Misfit fit(std::int64_t found, T& value) {
  if (!std::in_range<T>(found)) return Misfit::out_of_range;
  value = static_cast<T>(found);
  return Misfit::none;
}

template <std::floating_point T>
Misfit fit(std::int64_t found, T& value) {
  value = static_cast<T>(found);
  return Misfit::none;
}

// The error for the value `found` at `place`, meant for `field`.
Error misfit_error(Misfit misfit, std::string_view place, const Field& field, std::string_view found);

// Text from a file, safe to print: control characters are replaced, long text is truncated.
std::string shown(std::string_view text);

}  // namespace weft::formats
