#include "weft/rule/error_bound.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "weft/ops/number.h"

namespace weft::rule {
namespace {

constexpr std::int64_t kLargestDegree = std::int64_t{1} << 40;
constexpr int kMostCompared = 100;  // beyond, the bound is 1 in any case

std::int64_t degree_of(std::span<const Operation> side) {
  std::vector<std::int64_t> degrees;
  std::int64_t largest = 1;
  for (const Operation& operation : side) {
    std::int64_t sum = 0, most = 0;
    for (const Operand operand : operation.operands) {
      const std::int64_t inner =
          operand.operation < 0 ? 1 : degrees[static_cast<std::size_t>(operand.operation)];
      sum += inner;
      most = std::max(most, inner);
    }
    switch (operation.verb) {
      case Verb::matmul:
      case Verb::conv2d:
      case Verb::ewmul:
      case Verb::smul:
      case Verb::linear: most = sum; break;
      case Verb::square: most = 2 * sum; break;
      default: break;
    }
    degrees.push_back(std::min(most, kLargestDegree));
    largest = std::max(largest, degrees.back());
  }
  return largest;
}

Comparisons comparisons(const Equation& equation) {
  Comparisons found;
  for (const auto* side : {&equation.source, &equation.target})
    for (const Operation& operation : *side) {
      if (operation.verb == Verb::relu || operation.details.then_relu) ++found.with_zero;
      if (operation.verb == Verb::pool_max || operation.details.kind == ReduceKind::max ||
          operation.details.kind == ReduceKind::min)
        ++found.with_others;
    }
  return found;
}

// The probability of the rarest way in which the compared numbers can lie; 0 when there are none.
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

std::int64_t degree(const Equation& equation) {
  return std::max(degree_of(equation.source), degree_of(equation.target));
}

std::int64_t runs_needed(const Comparisons& compared, double bound) {
  const double rarest = rarest_way(compared);
  return rarest == 0 ? 0 : static_cast<std::int64_t>(std::ceil(std::log(bound) / std::log1p(-rarest)));
}

std::int64_t runs_needed(const Equation& equation, double bound) {
  return runs_needed(comparisons(equation), bound);
}

double error_bound(std::int64_t degree, const Comparisons& compared, const TriedCounts& tried) {
  const double root = static_cast<double>(degree) / static_cast<double>(ops::Field::kPrime);
  const double rarest = rarest_way(compared);
  double bound = static_cast<double>(tried.sizes) * std::pow(root, static_cast<double>(tried.draws));
  if (rarest > 0) bound += std::pow(1 - rarest, static_cast<double>(tried.runs));
  return std::min(bound, 1.0);
}

double error_bound(const Equation& equation, const TriedCounts& tried) {
  return error_bound(degree(equation), comparisons(equation), tried);
}

}  // namespace weft::rule
