#include "weft/rules/equation/equation_degree.h"

#include <algorithm>
#include <span>
#include <vector>

namespace weft::equation {
namespace {

constexpr std::int64_t kLargestDegree = std::int64_t{1} << 40;

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

}  // namespace

std::int64_t degree(const Equation& equation) {
  return std::max(degree_of(equation.source), degree_of(equation.target));
}

rule::Comparisons comparisons(const Equation& equation) {
  rule::Comparisons found;
  for (const auto* side : {&equation.source, &equation.target})
    for (const Operation& operation : *side) {
      if (operation.verb == Verb::relu || operation.details.then_relu) ++found.with_zero;
      if (operation.verb == Verb::pool_max || operation.details.kind == ReduceKind::max ||
          operation.details.kind == ReduceKind::min)
        ++found.with_others;
    }
  return found;
}

}  // namespace weft::equation
