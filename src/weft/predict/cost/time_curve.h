// weft/predict/cost/time_curve.h -- times measured at some sizes, interpolated and extrapolated.
//
//   seconds ^            ,x     Linear between neighbours in log bytes, log seconds. Below the smallest
//           |   x---x---'       size: the time of that size. Above the largest: the rate of that size.
//           +----------------> bytes
#pragma once
#include <cmath>
#include <cstdint>
#include <map>

namespace weft::cost {

class TimeCurve {
 public:
  // Of several times for one size, the smallest counts.
  void add(double bytes, double seconds) {
    const auto [at, fresh] = points_.try_emplace(bytes, seconds);
    if (!fresh && seconds < at->second) at->second = seconds;
  }
  bool empty() const { return points_.empty(); }
  // REQUIRES: not empty
  double least() const { return points_.begin()->second; }
  double seconds(double bytes) const {
    const auto above = points_.lower_bound(bytes);
    if (above == points_.begin()) return above->second;
    const auto below = std::prev(above);
    if (above == points_.end()) return below->second * bytes / below->first;
    const double part = std::log(bytes / below->first) / std::log(above->first / below->first);
    return below->second * std::pow(above->second / below->second, part);
  }

 private:
  std::map<double, double> points_;  // bytes, at least 1, to seconds
};

}  // namespace weft::cost
