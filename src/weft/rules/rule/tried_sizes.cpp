#include "weft/rules/rule/tried_sizes.h"

#include <algorithm>

#include <fmt/format.h>

#include "weft/rules/rule/breakpoints.h"
#include "weft/rules/rule/evaluate_number.h"

namespace weft::rule {
namespace {

// Whether a condition fixes the variable: k = 3.
bool states(const Condition& condition, std::uint16_t variable) {
  const auto is_variable = [&](const Number& number) {
    return number.kind == Number::Kind::variable && number.variable == variable;
  };
  if (condition.kind != Condition::Kind::equal) return false;
  return (is_variable(condition.left) && condition.right.kind == Number::Kind::literal) ||
         (is_variable(condition.right) && condition.left.kind == Number::Kind::literal);
}

}  // namespace

TriedSizes tried_of(const Rule& rule, std::span<const JudgedInstance> judged) {
  TriedSizes tried;
  tried.elements.resize(rule.inputs.size(), 0);
  tried.sizes.resize(rule.indices.size(), 0);
  tried.attributes.resize(rule.variables.size());
  const std::vector<const Number*> quotients = quotients_of(rule);
  tried.quotients.resize(quotients.size());
  for (const JudgedInstance& each : judged) {
    const RuleInstance& instance = each.instance;
    for (std::size_t input = 0; input < rule.inputs.size(); ++input) {
      const plan::Type type = instance.graph.type(instance.left[input]);
      tried.elements[input] = std::max(tried.elements[input], type.elements());
      for (std::size_t index = 0; index < rule.indices.size(); ++index)
        for (const Symbol name : instance.bindings.indices[index])
          if (type.has(name)) tried.sizes[index] = std::max(tried.sizes[index], type.size_of(name));
    }
    for (std::size_t k = 0; k < quotients.size(); ++k)
      if (!tried.quotients[k])
        tried.quotients[k] = evaluate(*quotients[k], instance.place(rule)).value_or(0) != 0;
    for (std::size_t k = 0; k < rule.variables.size(); ++k)
      if (rule.variables[k].kind == plan::AttributeKind::integer)
        tried.attributes[k].insert(instance.bindings.attributes[k].integer);
  }
  return tried;
}

bool TriedSizes::spreads_like(const TriedSizes& other) const {
  for (std::size_t index = 0; index < sizes.size(); ++index)
    if (sizes[index] <= 1 && other.sizes[index] > 1) return false;
  return true;
}

std::string TriedSizes::missing(const Rule& rule) const {
  if (const std::int64_t number = number_never_drawn(rule); number > 0)
    return fmt::format("the rule computes with {}, but no number that large was tried", number);
  if (std::ranges::find(quotients, false) != quotients.end())
    return "a quotient in the rule was 0 in every case tried";
  for (std::size_t input = 0; input < rule.inputs.size(); ++input)
    if (!rule.inputs[input].list.empty() && elements[input] <= 1)
      return fmt::format("{} was tried with only one element", rule.inputs[input].name);
  for (std::uint16_t k = 0; k < rule.variables.size(); ++k)
    if (attributes[k].size() == 1 &&
        std::ranges::none_of(rule.when, [&](const Condition& condition) { return states(condition, k); }))
      return fmt::format("{} was tried only as {}", rule.variables[k].name, *attributes[k].begin());
  return {};
}

}  // namespace weft::rule
