#include "weft/rules/rule/resolve_numbers.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "weft/base/nearest.h"

namespace weft::rule {
namespace {

using syntax::Comparison;
using syntax::Expression;

// A parameter of a named guard is written out wherever it stands: texts could grow without bound.
constexpr std::size_t kLongestNumbers = 100000;
constexpr std::size_t kMostConditions = 256;

constexpr std::array<std::string_view, 3> kFunctions = {"size", "elements", "ranks"};
constexpr std::array<std::string_view, 8> kFacts = {"divides", "even",       "odd",   "same_dtype",
                                                    "real",    "replicated", "whole", "distinct"};

std::size_t length(const Number& number) {
  std::size_t sum = 1;
  for (const Number& part : number.parts) sum += length(part);
  return sum;
}

Status expect_arguments(const Expression& call, std::size_t count) {
  if (call.parts.size() == count) return {};
  return user_error(fmt::format("{} takes {} argument{}, found {}", call.name.text, count,
                                count == 1 ? "" : "s", call.parts.size()),
                    {}, call.span);
}

Status expect_name(const Expression& expression, std::string_view what) {
  if (expression.kind == Expression::Kind::name) return {};
  return user_error(fmt::format("expected {}", what), {}, expression.span);
}

Number::Kind kind_of(char op) {
  switch (op) {
    case '+': return Number::Kind::add;
    case '-': return Number::Kind::subtract;
    case '*': return Number::Kind::multiply;
    case '/': return Number::Kind::divide;
    default: return Number::Kind::remainder;
  }
}

}  // namespace

Status NumberResolver::spend(const Number& number, Span span) {
  spent_ += length(number);
  if (spent_ <= kLongestNumbers) return {};
  return user_error("the numbers of a rule are too long when its guards are written out", {}, span);
}

Result<Number> NumberResolver::number(const Expression& expression) {
  Number result;
  switch (expression.kind) {
    case Expression::Kind::number: result.literal = expression.number; return result;
    case Expression::Kind::name: {
      if (parameters_ != nullptr) {
        const auto found = parameters_->find(expression.name.text);
        if (found == parameters_->end())
          return user_error(fmt::format("not a parameter of the guard: {}", expression.name.text), {},
                            expression.span);
        WEFT_TRY_STATUS(spend(found->second, expression.span));
        return found->second;
      }
      WEFT_TRY(place, names_.use_variable(expression.name, plan::AttributeKind::integer));
      result.kind = Number::Kind::variable;
      result.variable = place;
      return result;
    }
    case Expression::Kind::call: return call(expression);
    case Expression::Kind::arithmetic: {
      WEFT_TRY(left, number(expression.parts[0]));
      WEFT_TRY(right, number(expression.parts[1]));
      result.kind = kind_of(expression.op);
      result.parts = {std::move(left), std::move(right)};
      WEFT_TRY_STATUS(spend(result.parts[0], expression.span));
      return result;
    }
    default: return user_error("expected a whole number", {}, expression.span);
  }
}

Result<Number> NumberResolver::call(const Expression& expression) {
  Number result;
  const std::string_view name = expression.name.text;
  if (std::ranges::find(kFunctions, name) == kFunctions.end())
    return user_error(fmt::format("unknown function: {}", name), did_you_mean(name, kFunctions),
                      expression.name.span);
  if (parameters_ != nullptr)
    return user_error(fmt::format("a guard reads its parameters alone, found {}", name),
                      "give it the number as a parameter", expression.span);
  WEFT_TRY_STATUS(expect_arguments(expression, name == "size" ? 2 : 1));
  if (name == "ranks") {
    WEFT_TRY_STATUS(expect_name(expression.parts[0], "a mesh axis"));
    WEFT_TRY(axis, names_.use_variable(expression.parts[0].name, plan::AttributeKind::word));
    result.kind = Number::Kind::ranks;
    result.variable = axis;
    return result;
  }
  WEFT_TRY(of, value(expression.parts[0]));
  result.value = of;
  result.kind = name == "size" ? Number::Kind::size : Number::Kind::elements;
  if (name == "size") {
    WEFT_TRY_STATUS(expect_name(expression.parts[1], "an index"));
    WEFT_TRY(index, names_.index(expression.parts[1].name));
    result.index = index;
  }
  return result;
}

Result<std::uint16_t> NumberResolver::value(const Expression& expression) {
  if (parameters_ != nullptr)
    return user_error("a guard with a name compares numbers, not values", {}, expression.span);
  WEFT_TRY_STATUS(expect_name(expression, "the name of a value"));
  const auto found = left_.find(expression.name.text);
  if (found != left_.end()) return found->second;
  std::vector<std::string_view> known;
  for (const auto& [text, place] : left_) known.push_back(text);
  return user_error(fmt::format("the left side has no value {} here", expression.name.text),
                    did_you_mean(expression.name.text, known), expression.span);
}

Result<std::vector<Condition>> NumberResolver::conditions(std::span<const Comparison> comparisons) {
  std::vector<Condition> all;
  for (const Comparison& comparison : comparisons) WEFT_TRY_STATUS(condition(comparison, all));
  return all;
}

Status NumberResolver::condition(const Comparison& comparison, std::vector<Condition>& all) {
  if (all.size() >= kMostConditions)
    return user_error(fmt::format("a rule has at most {} conditions", kMostConditions), {}, comparison.span);
  if (comparison.kind == Comparison::Kind::fact) return fact(comparison.left, all);
  Condition result;
  WEFT_TRY(left, number(comparison.left));
  WEFT_TRY(right, number(comparison.right));
  result.left = std::move(left);
  result.right = std::move(right);
  result.kind = comparison.kind == Comparison::Kind::equal     ? Condition::Kind::equal
                : comparison.kind == Comparison::Kind::unequal ? Condition::Kind::unequal
                : comparison.kind == Comparison::Kind::less    ? Condition::Kind::less
                                                               : Condition::Kind::less_equal;
  all.push_back(std::move(result));
  return {};
}

Status NumberResolver::fact(const Expression& call, std::vector<Condition>& all) {
  const std::string_view name = call.name.text;
  Condition result;
  if (name == "divides" || name == "even" || name == "odd") {
    WEFT_TRY_STATUS(expect_arguments(call, name == "divides" ? 2 : 1));
    WEFT_TRY(left, number(call.parts[0]));
    result.left = std::move(left);
    if (name == "divides") {
      WEFT_TRY(right, number(call.parts[1]));
      result.right = std::move(right);
    }
    result.kind = name == "divides" ? Condition::Kind::divides
                  : name == "even"  ? Condition::Kind::even
                                    : Condition::Kind::odd;
  } else if (name == "same_dtype" || name == "real" || name == "replicated") {
    WEFT_TRY_STATUS(expect_arguments(call, name == "same_dtype" ? 2 : 1));
    WEFT_TRY(of, value(call.parts[0]));
    result.value = of;
    if (name == "same_dtype") {
      WEFT_TRY(other, value(call.parts[1]));
      result.other = other;
    }
    result.kind = name == "same_dtype" ? Condition::Kind::same_dtype
                  : name == "real"     ? Condition::Kind::real
                                       : Condition::Kind::replicated;
  } else if (name == "whole") {
    WEFT_TRY_STATUS(expect_arguments(call, 2));
    WEFT_TRY(of, value(call.parts[0]));
    WEFT_TRY_STATUS(expect_name(call.parts[1], "an index"));
    WEFT_TRY(index, names_.index(call.parts[1].name));
    result.kind = Condition::Kind::whole;
    result.value = of;
    result.other = index;
  } else if (name == "distinct") {
    WEFT_TRY_STATUS(expect_arguments(call, 2));
    for (const Expression& part : call.parts) WEFT_TRY_STATUS(expect_name(part, "an index"));
    WEFT_TRY(one, names_.index(call.parts[0].name));
    WEFT_TRY(other, names_.index(call.parts[1].name));
    result.kind = Condition::Kind::distinct;
    result.value = one;
    result.other = other;
  } else {
    return named_guard(call, all);
  }
  all.push_back(std::move(result));
  return {};
}

Status NumberResolver::named_guard(const Expression& call, std::vector<Condition>& all) {
  const auto found =
      std::ranges::find(guards_, call.name.text, [](const auto& guard) { return guard.name.text; });
  if (found == guards_.end() || parameters_ != nullptr) {
    std::vector<std::string_view> known(kFacts.begin(), kFacts.end());
    for (const syntax::Guard& guard : guards_) known.push_back(guard.name.text);
    return user_error(fmt::format("unknown guard: {}", call.name.text), did_you_mean(call.name.text, known),
                      call.name.span);
  }
  WEFT_TRY_STATUS(expect_arguments(call, found->parameters.size()));
  Parameters parameters;
  for (std::size_t i = 0; i < call.parts.size(); ++i) {
    WEFT_TRY(argument, number(call.parts[i]));
    parameters.insert_or_assign(found->parameters[i].text, std::move(argument));
  }
  parameters_ = &parameters;
  Status status;
  for (const Comparison& comparison : found->all)
    if (status.ok()) status = condition(comparison, all);
  parameters_ = nullptr;
  return status;
}

}  // namespace weft::rule
