#include "weft/rules/rule/error_bound.h"

#include <algorithm>
#include <cmath>

#include "weft/plan/ops/number.h"

namespace weft::rule {
namespace {

constexpr int kMostCompared = 100;  // with more, the bound is 1 anyway

// The probability of the rarest order of the compared numbers; 0 if there are none.
double rarest_way(const Comparisons& comparisons) {
  const auto [with_zero, with_others] = comparisons;
  const int compared = std::min(with_zero + with_others, kMostCompared);
  if (compared == 0) return 0;
  const auto factorial = [](int n) { return std::tgamma(n + 1); };
  const int half = compared / 2;
  const double ways = with_others > 0
                          ? factorial(compared + 1)
                          : factorial(compared + 1) / (factorial(half) * factorial(compared - half));
  return 1 / ways;
}

}  // namespace

std::int64_t runs_needed(const Comparisons& compared, double bound) {
  const double rarest = rarest_way(compared);
  return rarest == 0 ? 0 : static_cast<std::int64_t>(std::ceil(std::log(bound) / std::log1p(-rarest)));
}

double error_bound(std::int64_t degree, const Comparisons& compared, const TriedCounts& tried) {
  const double root = static_cast<double>(degree) / static_cast<double>(ops::Field::kPrime);
  const double rarest = rarest_way(compared);
  double bound = static_cast<double>(tried.sizes) * std::pow(root, static_cast<double>(tried.draws));
  if (rarest > 0) bound += std::pow(1 - rarest, static_cast<double>(tried.runs));
  return std::min(bound, 1.0);
}

double sampled_error(std::int64_t runs) { return 1 / (2 + static_cast<double>(runs)); }

double unseen_share(std::int64_t cases) {
  return cases <= 0 ? 1 : -std::expm1(std::log(0.01) / static_cast<double>(cases));
}

}  // namespace weft::rule
