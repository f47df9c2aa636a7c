// weft/base/median.h -- the median, which is robust against outliers.
#pragma once
#include <algorithm>
#include <vector>

#include "weft/base/check.h"

namespace weft {

// The mean of the two middle numbers if their count is even. REQUIRES: at least one number, none of
// them NaN
inline double median(std::vector<double> numbers) {
  WEFT_CHECK(!numbers.empty());
  const auto middle = numbers.begin() + static_cast<std::ptrdiff_t>(numbers.size() / 2);
  std::ranges::nth_element(numbers, middle);
  if (numbers.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(numbers.begin(), middle)) / 2;
}

}  // namespace weft
