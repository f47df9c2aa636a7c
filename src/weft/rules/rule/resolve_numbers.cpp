#include "weft/rules/rule/resolve_numbers.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "weft/base/nearest.h"
#include "weft/rules/rule/guards.h"

namespace weft::rule {
namespace {

using syntax::Comparison;
using syntax::Expression;

// A named guard's parameters are expanded wherever they occur, so texts could grow without bound.
constexpr std::size_t kLongestNumbers = 100000;
constexpr std::size_t kMostConditions = 256;

constexpr std::array<std::string_view, 3> kFunctions = {"size", "elements", "ranks"};

std::size_t length(const Number& number) {
  std::size_t sum = 1;
  for (const Number& part : number.parts) sum += length(part);
  return sum;
}

Status expect_arguments(const Expression& call, std::size_t count, std::string hint = {}) {
  if (call.parts.size() == count) return {};
  return user_error(fmt::format("{} takes {} argument{}, found {}", call.name.text, count,
                                count == 1 ? "" : "s", call.parts.size()),
                    std::move(hint), call.span);
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
  return user_error("the numbers of a rule are too long after expanding its guards", {}, span);
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
    return user_error(fmt::format("a guard may use only its parameters, found {}", name),
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
    WEFT_TRY(along, index(expression.parts[1]));
    result.index = along;
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

Result<std::uint16_t> NumberResolver::index(const Expression& expression) {
  WEFT_TRY_STATUS(expect_name(expression, "an index"));
  return names_.index(expression.name);
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
  const GuardWord* const word = find_guard_word(call.name.text);
  if (word == nullptr) return named_guard(call, all);
  WEFT_TRY_STATUS(
      expect_arguments(call, word->argument_count(), fmt::format("{}: {}", word->usage, word->meaning)));
  Condition result;
  result.kind = word->kind;
  for (std::size_t k = 0; k < call.parts.size(); ++k) {
    if (word->arguments[k] == GuardWord::Argument::number) {
      WEFT_TRY(argument, number(call.parts[k]));
      (k == 0 ? result.left : result.right) = std::move(argument);
      continue;
    }
    WEFT_TRY(place,
             word->arguments[k] == GuardWord::Argument::value ? value(call.parts[k]) : index(call.parts[k]));
    (k == 0 ? result.value : result.other) = place;
  }
  all.push_back(std::move(result));
  return {};
}

Status NumberResolver::named_guard(const Expression& call, std::vector<Condition>& all) {
  const auto found =
      std::ranges::find(guards_, call.name.text, [](const auto& guard) { return guard.name.text; });
  if (found == guards_.end() || parameters_ != nullptr) {
    std::vector<std::string_view> known;
    for (const GuardWord& word : guard_words())
      if (!word.is_sign()) known.push_back(word.name);
    for (const syntax::Guard& guard : guards_) known.push_back(guard.name.text);
    std::string hint = did_you_mean(call.name.text, known);
    if (hint.empty()) hint = fmt::format("guards are {}", fmt::join(known, ", "));
    return user_error(fmt::format("unknown guard: {}", call.name.text), std::move(hint), call.name.span);
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
