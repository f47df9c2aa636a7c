// weft/translate/recipe/fit_factors.h -- a few factors of a prediction, fitted to a few measured values.
//
//   measured 1.31 s; predicted 1.05 s, of which kernels are 90 % and the host 5 %
//     -> kernels take 1.23 times as long; the host's factor hardly moves
//
// Least squares of logarithms with a prior: a factor is 1 unless a measurement says otherwise. Each moves by its share
// of the predicted value and by how little is known about it. An error of a prediction has two parts: one that all
// predictions of these runs have in common, which factors correct, and one of each run alone, the scatter. A
// discrepancy far beyond both widens the prior, since then the common part is larger than expected.
#pragma once
#include <functional>
#include <span>
#include <vector>

#include "weft/base/result.h"

namespace weft::recipe {

constexpr double kLeastFactor = 0.3, kMostFactor = 3;

struct FactorProblem {
  std::vector<double> measured;  // all positive
  // By factor: how little is known of it, relative to the others.
  std::vector<double> unknown;
  double common = 0, scatter = 0;  // standard deviations of a prediction's logarithm, both positive
  // All predictions, in the order of `measured`, all positive.
  std::function<Result<std::vector<double>>(std::span<const double> factors)> predict;
};

struct FittedFactors {
  std::vector<double> factors;    // each from kLeastFactor to kMostFactor
  std::vector<double> predicted;  // with them
  double common = 0;              // the standard deviation that remains
};

// REQUIRES: at least one measured value and one factor.
Result<FittedFactors> fit_factors(const FactorProblem& problem);

}  // namespace weft::recipe
