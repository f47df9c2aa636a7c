#include "weft/predict/cost/rank_extrapolation.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace weft::cost {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

// Linear extrapolation through two points. Simulated times may fall a little where another slice
// begins; more ranks are never assumed to be faster.
double further(double at_few, double at_more, double steps) {
  if (!std::isfinite(at_few) || !std::isfinite(at_more)) return kNever;
  return at_more + std::max(at_more - at_few, 0.0) * steps;
}

}  // namespace

double extrapolated_seconds(Growth growth, std::int32_t ranks, double bytes, std::int32_t few,
                            const KnownSeconds& known) {
  const std::int32_t more = 2 * few;
  const double beyond = static_cast<double>(ranks - more) / few;  // in steps of the distance between the two
  const bool is_power = std::has_single_bit(static_cast<std::uint32_t>(ranks));
  switch (growth) {
    case Growth::blocks: {
      const double block = bytes / ranks;
      return further(known(few, block * few), known(more, block * more), beyond);
    }
    case Growth::hops: return further(known(few, bytes), known(more, bytes), beyond);
    case Growth::rounds:
      if (!is_power) return kNever;
      return further(known(few, bytes), known(more, bytes), std::log2(static_cast<double>(ranks) / more));
    case Growth::halves: {
      if (!is_power) return kNever;
      const double block = bytes / ranks;
      const double at_half = known(few / 2, block * few / 2), at_few = known(few, block * few);
      double seconds = known(more, block * more);
      if (!std::isfinite(at_half) || !std::isfinite(at_few) || !std::isfinite(seconds)) return kNever;
      // The last rounds, of few / 2 and of few blocks.
      const double shorter = std::max(at_few - at_half, 0.0), longer = std::max(seconds - at_few, 0.0);
      for (std::int32_t blocks = more; blocks < ranks; blocks *= 2)
        seconds += further(shorter, longer, static_cast<double>(blocks - few) / (few / 2));
      return seconds;
    }
  }
  return kNever;
}

}  // namespace weft::cost
