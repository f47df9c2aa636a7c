// weft/app/explain/ticks.h -- axis ticks at round numbers.
//
//   round_ticks(118, 6)      0 20 40 60 80 100
#pragma once
#include <cmath>
#include <vector>

namespace weft::explain {

// Ticks from 0 to `high` in about `count` steps of 1, 2 or 5 times a power of ten.
// REQUIRES: high > 0, finite; count > 0.
inline std::vector<double> round_ticks(double high, int count) {
  const double rough = high / count;
  const double decade = std::pow(10, std::floor(std::log10(rough)));
  const double share = rough / decade;
  const double step = decade * (share < 1.5 ? 1 : share < 3.5 ? 2 : share < 7.5 ? 5 : 10);
  std::vector<double> ticks;
  for (int i = 0; step > 0 && i <= 4 * count && step * i <= high; ++i) ticks.push_back(step * i);
  return ticks;
}

}  // namespace weft::explain
