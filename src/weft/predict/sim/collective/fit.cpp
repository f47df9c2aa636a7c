#include "weft/predict/sim/collective/fit.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <optional>

#include <fmt/format.h>

#include "weft/base/median.h"

namespace weft::sim {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// Relative error between repeated measurements. Without this floor, a perfect fit would justify any
// number of regimes.
constexpr double kMeasurementNoise = 0.01;
constexpr std::size_t kPointsPerRegime = 3;  // on average; a single regime has at least two
constexpr std::size_t kFewestPoints = 2;
constexpr double kNumbersPerRegime = 3;

double growth_of(Growth growth, double bytes) {
  return growth == Growth::streaming ? bytes : std::sqrt(bytes);
}

// Running sums for weighted least squares, so that any range of points is fitted at the same cost.
struct Sums {
  double w = 0, wx = 0, wxx = 0, wy = 0, wxy = 0, wyy = 0;

  void add(double x, double y, double weight) {
    w += weight;
    wx += weight * x;
    wxx += weight * x * x;
    wy += weight * y;
    wxy += weight * x * y;
    wyy += weight * y * y;
  }
};

struct Line {
  double intercept = 0, slope = 0;
  double error = kInfinity;  // weighted sum of squares
};

// The best line with intercept, slope >= 0: the unconstrained one, or the better of the two on the
// boundary.
Line best_line(const Sums& sums) {
  const auto error = [&](double a, double b) {
    const double squares = sums.wyy + a * a * sums.w + b * b * sums.wxx + 2 * a * b * sums.wx -
                           2 * a * sums.wy - 2 * b * sums.wxy;
    return std::max(squares, 0.0);
  };
  const auto line = [&](double a, double b) { return Line{a, b, error(a, b)}; };
  const double determinant = sums.w * sums.wxx - sums.wx * sums.wx;
  if (determinant > 1e-12 * sums.w * sums.wxx) {
    const double a = (sums.wy * sums.wxx - sums.wx * sums.wxy) / determinant;
    const double b = (sums.w * sums.wxy - sums.wx * sums.wy) / determinant;
    if (a >= 0 && b >= 0) return line(a, b);
  }
  const Line flat = line(sums.wy / sums.w, 0);
  const Line through_zero = line(0, sums.wxy / sums.wxx);
  return flat.error <= through_zero.error ? flat : through_zero;
}

// The best regime over points [first, end) for every `end`, in one pass.
struct Piece {
  Regime regime;
  double error = kInfinity;
};

std::vector<Piece> pieces_from(std::span<const Measurement> points, std::size_t first) {
  std::vector<Piece> pieces(points.size() + 1);
  // Scaled to the first point, to avoid loss of precision in sums of squares of bytes.
  const double unit_bytes = static_cast<double>(points[first].bytes);
  const double unit_seconds = points[first].seconds;
  for (const Growth growth : {Growth::streaming, Growth::filling}) {
    const double unit = growth_of(growth, unit_bytes);
    Sums sums;
    for (std::size_t end = first + 1; end <= points.size(); ++end) {
      const Measurement& point = points[end - 1];
      const double y = point.seconds / unit_seconds;
      sums.add(growth_of(growth, static_cast<double>(point.bytes)) / unit, y, 1 / (y * y));
      const Line line = best_line(sums);
      if (line.error >= pieces[end].error) continue;
      pieces[end] = {.regime = {.first_bytes = points[first].bytes,
                                .last_bytes = point.bytes,
                                .growth = growth,
                                .intercept = line.intercept * unit_seconds,
                                .slope = line.slope * unit_seconds / unit},
                     .error = line.error};
    }
  }
  return pieces;
}

// The best partition of all points into regimes: exact for each number of regimes; the criterion
// selects the number.
std::vector<Regime> best_regimes(std::span<const Measurement> points) {
  const std::size_t n = points.size();
  const std::size_t most = std::clamp<std::size_t>(n / kPointsPerRegime, 1, kMostRegimes);
  struct State {
    double error = kInfinity;
    std::size_t cut = 0;  // where its last regime begins
    Regime last;
  };
  std::vector states(most + 1, std::vector<State>(n + 1));
  states[0][0].error = 0;
  for (std::size_t first = 0; first + kFewestPoints <= n; ++first) {
    const std::vector<Piece> pieces = pieces_from(points, first);
    for (std::size_t count = 1; count <= most; ++count) {
      const double before = states[count - 1][first].error;
      if (before == kInfinity) continue;
      for (std::size_t end = first + kFewestPoints; end <= n; ++end) {
        State& state = states[count][end];
        if (before + pieces[end].error < state.error)
          state = {before + pieces[end].error, first, pieces[end].regime};
      }
    }
  }
  const auto size = static_cast<double>(n);
  const auto criterion = [&](std::size_t count) {
    const double variance = states[count][n].error / size + kMeasurementNoise * kMeasurementNoise;
    return size * std::log(variance) + kNumbersPerRegime * static_cast<double>(count) * std::log(size);
  };
  std::size_t chosen = 1;
  for (std::size_t count = 2; count <= most; ++count)
    if (states[count][n].error < kInfinity && criterion(count) < criterion(chosen)) chosen = count;
  std::vector<Regime> regimes(chosen);
  for (std::size_t end = n; chosen > 0; --chosen) {
    regimes[chosen - 1] = states[chosen][end].last;
    end = states[chosen][end].cut;
  }
  return regimes;
}

// Interpolates linearly between two points in log bytes, log seconds.
double between(double bytes, double low, double low_seconds, double high, double high_seconds) {
  const double share = std::log(bytes / low) / std::log(high / low);
  return low_seconds * std::pow(high_seconds / low_seconds, share);
}

Status check_measurements(std::span<const Measurement> measurements) {
  if (measurements.size() < kPointsPerRegime || measurements.size() > kMostMeasurements)
    return user_error(fmt::format("expected {} to {} measured sizes, found {}", kPointsPerRegime,
                                  kMostMeasurements, measurements.size()));
  std::int64_t last = 0;
  for (const Measurement& point : measurements) {
    if (point.bytes <= last)
      return user_error(
          fmt::format("expected ascending sizes of at least one byte, found {} after {}", point.bytes, last));
    // Limits far beyond any measurement, so that no square of a time overflows or underflows a
    // double.
    if (!(point.seconds >= 1e-15 && point.seconds <= 1e15))
      return user_error(
          fmt::format("expected a time above zero for {} bytes, found {} s", point.bytes, point.seconds));
    last = point.bytes;
  }
  return {};
}

void measure_errors(Fit& fit, std::span<const Measurement> measurements) {
  std::vector<double> errors;
  for (const Measurement& point : measurements)
    errors.push_back(std::fabs(fit.regime_seconds(point.bytes) / point.seconds - 1));
  fit.max_relative_error = std::ranges::max(errors);
  fit.median_relative_error = median(std::move(errors));
}

}  // namespace

AlgorithmShape ring_all_reduce(std::int32_t ranks) {
  return {.steps = 2.0 * (ranks - 1), .wire = 2.0 * (ranks - 1) / ranks};
}

AlgorithmShape tree_all_reduce(std::int32_t ranks) {
  const auto levels = std::bit_width(static_cast<std::uint32_t>(std::max(ranks, 1) - 1));
  return {.steps = 2.0 * levels, .wire = 2};
}

AlgorithmShape all_pairs_all_reduce(std::int32_t ranks) {
  return {.steps = 2, .wire = 2.0 * (ranks - 1) / ranks};
}

double Regime::seconds(double bytes) const { return intercept + slope * growth_of(growth, bytes); }

double Fit::seconds(std::int64_t bytes) const {
  const double whole = regime_seconds(bytes);
  const auto size = static_cast<double>(std::max<std::int64_t>(bytes, 0));
  const auto after =
      std::ranges::upper_bound(residuals, size, {}, [](const Residual& residual) { return residual.bytes; });
  // Outside the fitted sizes, only the regimes are used.
  if (after == residuals.begin()) return whole;
  const Residual& before = *(after - 1);
  if (after == residuals.end()) return size == before.bytes ? whole * before.ratio : whole;
  return whole * between(size, before.bytes, before.ratio, after->bytes, after->ratio);
}

double Fit::regime_seconds(std::int64_t bytes) const {
  const auto size = static_cast<double>(std::max<std::int64_t>(bytes, 0));
  for (std::size_t i = 0; i + 1 < regimes.size(); ++i) {
    if (bytes <= regimes[i].last_bytes) return regimes[i].seconds(size);
    const Regime& next = regimes[i + 1];
    if (bytes >= next.first_bytes) continue;
    const auto low = static_cast<double>(regimes[i].last_bytes), high = static_cast<double>(next.first_bytes);
    return between(size, low, regimes[i].seconds(low), high, next.seconds(high));
  }
  return regimes.back().seconds(size);
}

double Fit::bandwidth() const {
  for (std::size_t i = regimes.size(); i-- > 0;)
    if (regimes[i].growth == Growth::streaming && regimes[i].slope > 0) return shape.wire / regimes[i].slope;
  return 0;
}

Result<Fit> fit(std::span<const Measurement> measurements, const AlgorithmShape& shape) {
  WEFT_TRY_STATUS(check_measurements(measurements));
  std::vector<Measurement> points(measurements.begin(), measurements.end());
  for (std::size_t i = points.size() - 1; i-- > 0;)
    points[i].seconds = std::min(points[i].seconds, points[i + 1].seconds);
  Fit result{.shape = shape, .regimes = best_regimes(points)};
  measure_errors(result, measurements);
  for (const Measurement& point : points)
    result.residuals.push_back(
        {static_cast<double>(point.bytes), point.seconds / result.regime_seconds(point.bytes)});
  return result;
}

Latency separate_latency(std::span<const Fit> fits) {
  if (fits.empty()) return {};
  Sums sums;
  for (const Fit& each : fits) {
    const double latency = std::max(each.latency(), 1e-15);
    sums.add(each.shape.steps, latency, 1 / (latency * latency));
  }
  const Line line = best_line(sums);
  return {.base = line.intercept, .step = line.slope};
}

double interpolate(std::span<const Measurement> measurements, double bytes) {
  if (measurements.size() == 1) return measurements[0].seconds;
  std::size_t above = 1;
  while (above + 1 < measurements.size() && static_cast<double>(measurements[above].bytes) < bytes) ++above;
  const Measurement &low = measurements[above - 1], &high = measurements[above];
  return between(bytes, static_cast<double>(low.bytes), low.seconds, static_cast<double>(high.bytes),
                 high.seconds);
}

std::vector<Crossover> crossovers(const Curve& first, const Curve& second, std::int64_t min_bytes,
                                  std::int64_t max_bytes, double margin) {
  constexpr double kLooksPerDoubling = 16;
  std::vector<Crossover> found;
  if (min_bytes < 1 || max_bytes <= min_bytes) return found;
  const double doublings = std::log2(static_cast<double>(max_bytes) / static_cast<double>(min_bytes));
  const auto looks = static_cast<std::int64_t>(std::ceil(doublings * kLooksPerDoubling));
  std::optional<bool> leader;  // whether the first curve leads by more than the margin
  double overtaken = 0;        // where the leader fell behind, by any amount; 0: nowhere
  for (std::int64_t look = 0; look <= looks; ++look) {
    const double share = static_cast<double>(look) / static_cast<double>(looks);
    const double bytes = static_cast<double>(min_bytes) * std::exp2(doublings * share);
    const auto size = std::clamp(static_cast<std::int64_t>(std::llround(bytes)), min_bytes, max_bytes);
    const double lead = std::log(second(size) / first(size));  // positive: the first is faster
    const bool behind = leader && *leader != (lead > 0);
    if (!behind) overtaken = 0;
    if (behind && overtaken == 0) overtaken = bytes;
    if (!(std::fabs(lead) > std::log1p(margin))) continue;
    if (behind) found.push_back({.bytes = overtaken, .first_is_faster_after = lead > 0});
    leader = lead > 0;
  }
  return found;
}

}  // namespace weft::sim
