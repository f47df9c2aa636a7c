#include "weft/translate/recipe/fit_factors.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "weft/base/check.h"

namespace weft::recipe {
namespace {

using Vector = std::vector<double>;
using Matrix = std::vector<Vector>;

double dot(const Vector& a, const Vector& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// The lower triangle L of a positive definite matrix L L'.
Matrix cholesky(Matrix a) {
  for (std::size_t i = 0; i < a.size(); ++i)
    for (std::size_t j = 0; j <= i; ++j) {
      double sum = a[i][j];
      for (std::size_t k = 0; k < j; ++k) sum -= a[i][k] * a[j][k];
      a[i][j] = i == j ? std::sqrt(sum) : sum / a[j][j];
    }
  return a;
}

Vector solve(const Matrix& lower, Vector b) {
  const std::size_t n = b.size();
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t k = 0; k < i; ++k) b[i] -= lower[i][k] * b[k];
    b[i] /= lower[i][i];
  }
  for (std::size_t i = n; i-- > 0;) {
    for (std::size_t k = i + 1; k < n; ++k) b[i] -= lower[k][i] * b[k];
    b[i] /= lower[i][i];
  }
  return b;
}

// Measured values around one point, as if predictions were linear in the logarithms of the factors.
struct Linear {
  Matrix slopes;   // by value, then factor: its share of the prediction
  Vector offsets;  // logarithms of measured over predicted, at factors of 1
};

struct Posterior {
  Vector logs;          // of the factors
  double evidence = 0;  // log likelihood of the offsets, without constants
  double variance = 0;  // of predictions by the factors, the mean over the values
};

Posterior solve_linear(const Linear& linear, const Vector& deviations, double scatter) {
  const std::size_t count = deviations.size();
  const double noise = scatter * scatter;
  Matrix precision(count, Vector(count));
  Vector pull(count);
  for (std::size_t v = 0; v < linear.slopes.size(); ++v)
    for (std::size_t i = 0; i < count; ++i) {
      pull[i] += linear.slopes[v][i] * linear.offsets[v] / noise;
      for (std::size_t j = 0; j < count; ++j)
        precision[i][j] += linear.slopes[v][i] * linear.slopes[v][j] / noise;
    }
  double log_ratio = 0;
  for (std::size_t i = 0; i < count; ++i) {
    precision[i][i] += 1 / (deviations[i] * deviations[i]);
    log_ratio += 2 * std::log(deviations[i]);
  }
  const Matrix lower = cholesky(std::move(precision));
  for (std::size_t i = 0; i < count; ++i) log_ratio += 2 * std::log(lower[i][i]);
  Posterior made;
  made.logs = solve(lower, pull);
  made.evidence = -0.5 * (dot(linear.offsets, linear.offsets) / noise - dot(pull, made.logs) + log_ratio);
  for (const Vector& slopes : linear.slopes) made.variance += dot(slopes, solve(lower, slopes));
  made.variance /= static_cast<double>(linear.slopes.size());
  return made;
}

class FactorFit {
 public:
  explicit FactorFit(const FactorProblem& problem) : problem_(problem) {}

  Result<FittedFactors> run() {
    Vector logs(problem_.unknown.size());
    WEFT_TRY(found, predict(logs));
    Vector predicted = std::move(found);
    WEFT_TRY(linear, linearize(logs, predicted));
    choose_deviations(linear);
    Posterior posterior;
    for (int pass = 0; pass < kPasses; ++pass) {
      posterior = solve_linear(linear, deviations_, problem_.scatter);
      const Vector foreseen = linear_at(linear, posterior.logs);
      WEFT_TRY(moved, move(logs, predicted, posterior.logs));
      if (moved < kSmallMove) break;
      // The host's time is a lower bound, so that slopes change where it begins to count.
      if (furthest(foreseen, predicted) < kSmallMove) break;
      WEFT_TRY(next, linearize(logs, predicted));
      linear = std::move(next);
    }
    FittedFactors made;
    for (const double log : logs) made.factors.push_back(std::exp(log));
    made.predicted = std::move(predicted);
    made.common = std::min(problem_.common, std::sqrt(posterior.variance));
    return made;
  }

 private:
  static constexpr int kPasses = 3;
  static constexpr double kSmallMove = 0.005, kProbe = 0.05;

  // The predictions that the slopes foresee.
  Vector linear_at(const Linear& linear, const Vector& logs) const {
    Vector foreseen;
    for (std::size_t v = 0; v < linear.offsets.size(); ++v)
      foreseen.push_back(problem_.measured[v] * std::exp(dot(linear.slopes[v], logs) - linear.offsets[v]));
    return foreseen;
  }

  static double furthest(const Vector& a, const Vector& b) {
    double most = 0;
    for (std::size_t v = 0; v < a.size(); ++v) most = std::max(most, std::abs(std::log(a[v] / b[v])));
    return most;
  }

  Result<Vector> predict(const Vector& logs) const {
    Vector factors;
    for (const double log : logs) factors.push_back(std::exp(log));
    WEFT_TRY(predicted, problem_.predict(factors));
    WEFT_CHECK(predicted.size() == problem_.measured.size());
    for (const double value : predicted)
      if (!(value > 0) || !std::isfinite(value)) return user_error("a prediction is not positive");
    return predicted;
  }

  Result<Linear> linearize(const Vector& logs, const Vector& predicted) const {
    Linear linear{Matrix(predicted.size(), Vector(logs.size())), {}};
    for (std::size_t i = 0; i < logs.size(); ++i) {
      Vector probed = logs;
      probed[i] += kProbe;
      WEFT_TRY(there, predict(probed));
      for (std::size_t v = 0; v < predicted.size(); ++v)
        linear.slopes[v][i] = std::log(there[v] / predicted[v]) / kProbe;
    }
    for (std::size_t v = 0; v < predicted.size(); ++v)
      linear.offsets.push_back(std::log(problem_.measured[v] / predicted[v]) + dot(linear.slopes[v], logs));
    return linear;
  }

  // Prior deviations that give predictions the common error, or a larger one that makes the offsets more likely.
  void choose_deviations(const Linear& linear) {
    double variance = 0;
    for (const Vector& slopes : linear.slopes)
      for (std::size_t i = 0; i < slopes.size(); ++i)
        variance += std::pow(slopes[i] * problem_.unknown[i], 2) / static_cast<double>(linear.slopes.size());
    const double scale = problem_.common / std::max(std::sqrt(variance), kLeastShare);
    constexpr double kWider = 1.05;
    double best = -std::numeric_limits<double>::infinity();
    for (double wider = 1; wider <= kWidest; wider *= kWider) {
      Vector deviations;
      for (const double unknown : problem_.unknown) deviations.push_back(scale * wider * unknown);
      const double evidence = solve_linear(linear, deviations, problem_.scatter).evidence;
      if (evidence <= best) continue;
      best = evidence;
      deviations_ = std::move(deviations);
    }
  }
  // Factors of a smaller share of the prediction are not made to explain it. One measurement may itself be wrong: it
  // does not make the common error larger than 1.4 times the expected one (picked between 1
  // and 2 after trials on all published tables, with none held out).
  static constexpr double kLeastShare = 0.2, kWidest = 1.4;

  double cost(const Vector& logs, const Vector& predicted) const {
    double sum = 0;
    for (std::size_t v = 0; v < predicted.size(); ++v)
      sum += std::pow(std::log(problem_.measured[v] / predicted[v]) / problem_.scatter, 2);
    for (std::size_t i = 0; i < logs.size(); ++i) sum += std::pow(logs[i] / deviations_[i], 2);
    return sum;
  }

  // Goes towards `to` as far as that lowers the cost; returns how far.
  Result<double> move(Vector& logs, Vector& predicted, const Vector& to) const {
    const double now = cost(logs, predicted);
    for (double part = 1; part > 0.1; part /= 2) {
      Vector next = logs;
      double moved = 0;
      for (std::size_t i = 0; i < logs.size(); ++i) {
        next[i] =
            std::clamp(logs[i] + part * (to[i] - logs[i]), std::log(kLeastFactor), std::log(kMostFactor));
        moved = std::max(moved, std::abs(next[i] - logs[i]));
      }
      if (moved < kSmallMove && part == 1) return moved;
      WEFT_TRY(there, predict(next));
      if (cost(next, there) >= now) continue;
      logs = std::move(next);
      predicted = std::move(there);
      return moved;
    }
    return 0.0;
  }

  const FactorProblem& problem_;
  Vector deviations_;
};

}  // namespace

Result<FittedFactors> fit_factors(const FactorProblem& problem) {
  WEFT_CHECK(!problem.measured.empty() && !problem.unknown.empty());
  WEFT_CHECK(problem.common > 0 && problem.scatter > 0);
  return FactorFit(problem).run();
}

}  // namespace weft::recipe
