#include "weft/rules/equation/rank.h"

#include <algorithm>
#include <span>
#include <unordered_set>
#include <utility>
#include <vector>

#include "weft/rules/equation/algebra.h"
#include "weft/rules/equation/canonical.h"

namespace weft::equation {
namespace {

// Sending is expensive. At the tiny sizes of an example, a launch costs as much as a few numbers.
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
    inputs.push_back(shape_of(local_sizes(input, ranks)));
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

namespace {

double weigh(const SideCost& cost) {
  return kSentWeight * cost.sent + kLaunchWeight * cost.launches + kComputedWeight * cost.computed;
}

// Whether a side uses an input twice; such patterns are rare in plans.
bool repeats_input(const std::vector<Operation>& side) {
  std::vector<std::int32_t> used;
  for (const Operation& operation : side)
    for (const Operand operand : operation.operands)
      if (operand.operation < 0) used.push_back(operand.result);
  std::sort(used.begin(), used.end());
  return std::adjacent_find(used.begin(), used.end()) != used.end();
}

// What the rule saves, in the better of the directions in which it is proven, per collective that
// its pattern has to match.
double saving(const GeneratedRule& rule) {
  const Equation& equation = rule.equation;
  const auto saved = [&](const std::vector<Operation>& from, const std::vector<Operation>& to) {
    const auto found = std::count_if(from.begin(), from.end(), [](const Operation& operation) {
      return is_communication(operation.verb);
    });
    if (repeats_input(from)) return 0.0;
    return (weigh(cost_of(equation, from)) - weigh(cost_of(equation, to))) /
           static_cast<double>(std::max<std::ptrdiff_t>(found, 1));
  };
  const double forth = holds_everywhere(rule.verdict) ? saved(equation.source, equation.target) : 0;
  const double back = holds_everywhere(rule.backward) ? saved(equation.target, equation.source) : 0;
  return std::max({forth, back, 0.0});
}

Digest key_without_axes(Equation equation) {
  for (auto* side : {&equation.source, &equation.target})
    for (Operation& operation : *side) operation.details.axis = operation.details.other_axis = 0;
  for (EquationInput& input : equation.inputs)
    if (input.holding == Holding::sharded) input.sharded_dim = 0;
  return canonical_key(equation);
}

}  // namespace

double gain(const Equation& equation) {
  const double before = weigh(cost_of(equation, equation.source)),
               after = weigh(cost_of(equation, equation.target));
  return before == 0 ? 0 : (before - after) / before;
}

std::vector<std::size_t> most_useful(const std::vector<GeneratedRule>& rules, const Theory& known,
                                     std::size_t count) {
  std::vector<std::pair<double, std::size_t>> order;
  for (std::size_t k = 0; k < rules.size(); ++k)
    if (const double saved = saving(rules[k]); saved > 0) order.emplace_back(-saved, k);
  std::sort(order.begin(), order.end());
  std::vector<std::size_t> best;
  std::unordered_set<Digest> seen;
  for (const auto& [saved, k] : order) {
    if (best.size() == count) break;
    if (!seen.contains(key_without_axes(rules[k].equation)) && !known.derive(rules[k].equation)) {
      seen.insert(key_without_axes(rules[k].equation));
      best.push_back(k);
    }
  }
  return best;
}

}  // namespace weft::equation
