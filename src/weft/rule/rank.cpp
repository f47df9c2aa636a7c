#include "weft/rule/rank.h"

#include <algorithm>
#include <span>
#include <vector>

#include "weft/rule/algebra.h"

namespace weft::rule {
namespace {

// Sending a number is dear, a launch is a few numbers' worth at the tiny sizes of an example.
constexpr double kSentWeight = 8, kLaunchWeight = 4, kComputedWeight = 0.125;

double sent_by(const Operation& operation, double elements, std::int32_t all_ranks) {
  const auto& groups = operation.details.groups;
  const double ranks = groups.empty() ? all_ranks : static_cast<double>(groups.front().size());
  if (ranks < 2) return 0;
  const double others = (ranks - 1) / ranks;
  switch (operation.verb) {
    case Verb::all_reduce: return 2 * others * elements;
    case Verb::reduce_scatter:
    case Verb::all_to_all: return others * elements;
    case Verb::all_gather: return (ranks - 1) * elements;
    case Verb::broadcast:
    case Verb::permute: return elements;
    default: return 0;
  }
}

double computed_by(const Operation& operation, std::span<const Shape> operands, const Shape& result) {
  const double elements = static_cast<double>(elements_of(result));
  switch (operation.verb) {
    case Verb::matmul: return elements * static_cast<double>(operands[0].sizes.back());
    case Verb::linear: return elements * static_cast<double>(operands[0].sizes.back());
    case Verb::conv2d:
      return elements * static_cast<double>(elements_of(operands[1])) /
             static_cast<double>(std::max<std::int64_t>(operands[1].sizes[0], 1));
    case Verb::shard:
    case Verb::split:
    case Verb::identity:
    case Verb::partition:
    case Verb::combine: return 0;
    default: return elements;
  }
}

}  // namespace

SideCost cost_of(const Equation& equation, std::span<const Operation> side) {
  const std::int32_t ranks =
      equation.distributed() ? *std::max_element(equation.ranks.begin(), equation.ranks.end()) : 1;
  std::vector<Shape> inputs;
  for (const EquationInput& input : equation.inputs) {
    inputs.push_back(shape_of(input.example));
    if (input.holding == Holding::sharded)
      inputs.back().sizes[static_cast<std::size_t>(input.sharded_dim)] /= ranks;
  }
  SideCost cost;
  const auto sized = size_constants(side, inputs);
  if (!sized.ok()) return cost;
  std::vector<std::vector<Shape>> results;
  for (const Operation& operation : *sized) {
    std::vector<Shape> operands;
    for (const Operand operand : operation.operands)
      operands.push_back(operand.operation < 0 ? inputs[static_cast<std::size_t>(operand.result)]
                                               : results[static_cast<std::size_t>(operand.operation)]
                                                        [static_cast<std::size_t>(operand.result)]);
    auto shapes = infer(operation, operands, ranks);
    if (!shapes.ok()) return cost;
    cost.launches += operation.verb != Verb::identity && !is_constant(operation.verb);
    if (!operands.empty()) {
      cost.sent += sent_by(operation, static_cast<double>(elements_of(operands[0])), ranks);
      cost.computed += computed_by(operation, operands, shapes->front());
    }
    results.push_back(std::move(*shapes));
  }
  return cost;
}

double gain(const Equation& equation) {
  const auto weigh = [](const SideCost& cost) {
    return kSentWeight * cost.sent + kLaunchWeight * cost.launches + kComputedWeight * cost.computed;
  };
  const double before = weigh(cost_of(equation, equation.source)),
               after = weigh(cost_of(equation, equation.target));
  return before == 0 ? 0 : (before - after) / before;
}

}  // namespace weft::rule
