// weft/base/median.h -- the middle one of several numbers, which a few bad ones do not move.
#pragma once
#include <algorithm>
#include <vector>

#include "weft/base/check.h"

namespace weft {

// The upper one where two are in the middle. REQUIRES: at least one number, none of them NaN
inline double median(std::vector<double> numbers) {
  WEFT_CHECK(!numbers.empty());
  const auto middle = numbers.begin() + static_cast<std::ptrdiff_t>(numbers.size() / 2);
  std::ranges::nth_element(numbers, middle);
  return *middle;
}

}  // namespace weft
