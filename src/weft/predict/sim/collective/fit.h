// weft/predict/sim/collective/fit.h -- fits latency and bandwidth to a table of measured times.
//
//   time ^                          ___/    A runtime changes its protocol, number of channels and number
//        |                    _____/        of threads with the message size, so the time of one
//        |            .______/              algorithm is piecewise, with jumps between the pieces. A
//        |   ________/                      piece, here a regime, is one of
//        +---filling--|--streaming--|---> size
//
//     streaming   intercept + slope * bytes          every channel is busy: slope is wire / bandwidth
//     filling     intercept + slope * sqrt(bytes)    channels are still being added: twice the bytes use
//                                                    sqrt(2) times as many channels, each carrying
//                                                    sqrt(2) times as much
//
// The partition into regimes is optimal (dynamic programming over the sizes). Each regime minimizes
// the squared relative error with intercept >= 0 and slope >= 0. The Bayesian information criterion
// decides whether another regime is worth its three parameters (two and its end). The exact change
// between two regimes is unknown: between the last size of one and the first of the next, times are
// interpolated linearly in log bytes, log seconds.
//
// A larger call includes the work of a smaller one. So a smaller call that was measured slower is a
// disturbance (the first size of a run is often cold), and its time is set to that of the larger.
//
// Predictions also include the residuals of the regimes at the measured sizes. Without them, curves
// that are close together would cross in the wrong place.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "weft/base/result.h"

namespace weft::sim {

struct Measurement {
  std::int64_t bytes = 0;
  double seconds = 0;
};

// What is known of the algorithm before any measurement.
struct AlgorithmShape {
  double steps = 1;  // consecutive messages on the longest chain
  double wire = 1;   // sent by the busiest rank, as a fraction of the buffer
};
AlgorithmShape ring_all_reduce(std::int32_t ranks);       // 2(n-1) steps, 2(n-1)/n of the buffer
AlgorithmShape tree_all_reduce(std::int32_t ranks);       // 2 ceil(log2 n) steps, twice the buffer
AlgorithmShape all_pairs_all_reduce(std::int32_t ranks);  // 2 steps, 2(n-1)/n of the buffer

enum class Growth : std::uint8_t { streaming, filling };

struct Regime {
  std::int64_t first_bytes = 0, last_bytes = 0;  // the smallest and largest size it was fitted to
  Growth growth = Growth::streaming;
  double intercept = 0;  // seconds
  double slope = 0;      // seconds per byte; filling: per square root of a byte

  double seconds(double bytes) const;
};

struct Fit {
  AlgorithmShape shape = {};
  std::vector<Regime> regimes = {};  // by size, at least one
  // The residual of the regimes at a fitted size: the ratio of measured time to regime. It is
  // interpolated linearly in logs, so that seconds() matches every fitted size.
  struct Residual {
    double bytes = 0, ratio = 1;
  };
  std::vector<Residual> residuals = {};
  double median_relative_error = 0,
         max_relative_error = 0;  // of the regimes at the measured points

  // Extrapolates with the first and the last regime outside the fitted sizes.
  double seconds(std::int64_t bytes) const;
  double regime_seconds(std::int64_t bytes) const;  // without the residuals

  // For a simulator. bandwidth(), in bytes per second, is the rate of a rank's busiest link in the
  // last streaming regime; 0 if there is none. latency(), in seconds, is the time of a call with no
  // bytes.
  double bandwidth() const;
  double latency() const { return regimes.front().intercept; }
};

// The maximum number of regimes. A regime also needs three points: two determine it, one can
// contradict it.
inline constexpr std::int32_t kMostRegimes = 4;
inline constexpr std::size_t kMostMeasurements = 512;  // the search takes quadratic time

// Fails for fewer than three points, for sizes that are not ascending and at least one byte, and
// for times that are not positive.
Result<Fit> fit(std::span<const Measurement> measurements, const AlgorithmShape& shape);

// One table cannot separate the latency of a call from that of its steps: latency = base + steps *
// step. Fits of algorithms with different numbers of steps can, by least squares with base, step >=
// 0.
struct Latency {
  double base = 0;  // seconds per call
  double step = 0;  // seconds per step
};
Latency separate_latency(std::span<const Fit> fits);

// Interpolates and extrapolates linearly in log bytes, log seconds. REQUIRES: at least one
// measurement, sizes ascending, all positive.
double interpolate(std::span<const Measurement> measurements, double bytes);

// A size at which one curve overtakes the other. A lead below `margin` is a tie and not a
// crossover. When a lead grows beyond it, the crossover is where the lead began.
struct Crossover {
  double bytes = 0;
  bool first_is_faster_after = false;
};
using Curve = std::function<double(std::int64_t)>;  // bytes to seconds
std::vector<Crossover> crossovers(const Curve& first, const Curve& second, std::int64_t min_bytes,
                                  std::int64_t max_bytes, double margin = 0.05);

}  // namespace weft::sim
