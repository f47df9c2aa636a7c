// weft/predict/sim/collective/fit.h -- what a table of measured times says about latency and bandwidth.
//
//   time ^                          ___/    A runtime changes its protocol, its number of channels and
//        |                    _____/        of threads with the size of a message, so the time of one
//        |            .______/              algorithm is a few pieces with jumps between them. A piece,
//        |   ________/                      here a regime, is one of
//        +---filling--|--streaming--|---> size
//
//     streaming   intercept + slope * bytes          every channel is busy: slope is wire / bandwidth
//     filling     intercept + slope * sqrt(bytes)    channels are still being added: twice the bytes go
//                                                    over sqrt(2) times as many, each carrying sqrt(2)
//                                                    times as much
//
// The cuts are the best of all (dynamic programming over the sizes), every regime's numbers are least
// squares of the relative error under intercept >= 0 and slope >= 0, and a further regime must earn its
// three numbers (two and its end) by the Bayesian information criterion. Between the last size of one
// regime and the first of the next nobody knows where the change is: the time there is the straight line
// in log bytes, log seconds. A larger call does all that a smaller one does, so a smaller one measured
// slower is a disturbance (the first size of a run is often cold) and counts as fast as the larger.
//
// Regimes explain; predictions also keep what they leave unexplained at the measured sizes (residuals),
// without which curves that lie close together would cross in the wrong place.
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
  double steps = 1;  // messages in a row on the longest chain
  double wire = 1;   // what the busiest rank sends, as a share of the buffer
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
  // What the regimes leave unexplained at the fitted sizes: bytes, and measured over regime. Between sizes
  // it is carried along a straight line in logs, so that seconds() meets every size it was fitted to.
  struct Residual {
    double bytes = 0, ratio = 1;
  };
  std::vector<Residual> residuals = {};
  double median_relative_error = 0,
         max_relative_error = 0;  // of the regimes on the fitted points, as measured

  // Outside the fitted sizes the first and the last regime go on.
  double seconds(std::int64_t bytes) const;
  double regime_seconds(std::int64_t bytes) const;  // without the residuals

  // For a simulator. The bandwidth, in bytes per second, is what a rank's busiest link carries in the
  // last streaming regime (0: none was found); the latency, in seconds, is the time of no bytes at all.
  double bandwidth() const;
  double latency() const { return regimes.front().intercept; }
};

// At most this many regimes, and one for every three points at most: two determine it, one can object.
inline constexpr std::int32_t kMostRegimes = 4;
inline constexpr std::size_t kMostMeasurements = 512;  // the search is quadratic

// Fails for fewer than three points, sizes that do not ascend from at least one byte, and times that are
// not positive.
Result<Fit> fit(std::span<const Measurement> measurements, const AlgorithmShape& shape);

// One table cannot tell what a call costs from what its steps cost: latency = base + steps * step. Fits of
// algorithms with different numbers of steps can, by least squares with base, step >= 0.
struct Latency {
  double base = 0;  // seconds a call
  double step = 0;  // seconds a step
};
Latency separate_latency(std::span<const Fit> fits);

// The straight line between neighbours in log bytes, log seconds, going on at both ends.
// REQUIRES: at least one measurement, sizes ascending, all positive.
double interpolate(std::span<const Measurement> measurements, double bytes);

// Where one curve overtakes another. A lead below `margin` is a tie and overtakes nobody; a lead that grows
// beyond it counts from where it began.
struct Crossover {
  double bytes = 0;
  bool first_is_faster_after = false;
};
using Curve = std::function<double(std::int64_t)>;  // bytes to seconds
std::vector<Crossover> crossovers(const Curve& first, const Curve& second, std::int64_t min_bytes,
                                  std::int64_t max_bytes, double margin = 0.05);

}  // namespace weft::sim
