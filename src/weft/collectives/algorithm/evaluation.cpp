#include "weft/collectives/algorithm/evaluation.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "weft/base/nearest.h"
#include "weft/collectives/algorithm/algorithm_parser.h"

namespace weft::collective {
namespace {

constexpr std::int32_t kDeepestCall = 64;  // nested function calls
constexpr std::int64_t kLongestList = std::int64_t{1} << 24;

std::int64_t floor_division(std::int64_t a, std::int64_t b) {
  const std::int64_t quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

}  // namespace

Evaluation::Evaluation(const AlgorithmSyntax& syntax, Progress& progress)
    : syntax_(syntax),
      progress_(progress),
      slots_(syntax.slots),
      words_(syntax.word_slots),
      lists_(syntax.list_slots) {}

std::int64_t Evaluation::number(ExpressionId id) {
  const Expression& expression = syntax_.expressions[id];
  --progress_.work_left;
  std::int64_t result = 0;
  switch (expression.op) {
    case Operator::number: return expression.value;
    case Operator::variable: return slots_[expression.value];
    case Operator::argument: return arguments_[expression.value];
    case Operator::logical_or: return number(expression.first) != 0 || number(expression.second) != 0;
    case Operator::logical_and: return number(expression.first) != 0 && number(expression.second) != 0;
    case Operator::logical_not: return number(expression.first) == 0;
    case Operator::choose:
      return number(expression.first) != 0 ? number(expression.second) : number(expression.third);
    case Operator::equal: return number(expression.first) == number(expression.second);
    case Operator::not_equal: return number(expression.first) != number(expression.second);
    case Operator::less: return number(expression.first) < number(expression.second);
    case Operator::less_equal: return number(expression.first) <= number(expression.second);
    case Operator::greater: return number(expression.first) > number(expression.second);
    case Operator::greater_equal: return number(expression.first) >= number(expression.second);
    case Operator::same_word: return word(expression.first) == word(expression.second);
    case Operator::other_word: return word(expression.first) != word(expression.second);
    case Operator::add:
      if (__builtin_add_overflow(number(expression.first), number(expression.second), &result)) break;
      return result;
    case Operator::subtract:
      if (__builtin_sub_overflow(number(expression.first), number(expression.second), &result)) break;
      return result;
    case Operator::multiply:
      if (__builtin_mul_overflow(number(expression.first), number(expression.second), &result)) break;
      return result;
    case Operator::negate:
      if (__builtin_sub_overflow(std::int64_t{0}, number(expression.first), &result)) break;
      return result;
    case Operator::divide: {
      const std::int64_t a = number(expression.first), b = number(expression.second);
      if (b == 0) return refuse(expression, "division by zero", b);
      if (a == std::numeric_limits<std::int64_t>::min() && b == -1) break;
      return floor_division(a, b);
    }
    case Operator::modulo: {
      const std::int64_t a = number(expression.first), b = number(expression.second);
      if (b <= 0) return refuse(expression, "MOD by a number that is not positive", b);
      result = a % b;
      return result < 0 ? result + b : result;
    }
    case Operator::absolute:
      result = number(expression.first);
      if (result == std::numeric_limits<std::int64_t>::min()) break;
      return result < 0 ? -result : result;
    case Operator::minimum:
    case Operator::maximum: return extreme(expression);
    case Operator::sum:
    case Operator::length:
    case Operator::item: return of_list(expression);
    case Operator::call: return call(expression);
    default: return of_bits(expression);
  }
  return overflow(expression);
}

std::int64_t Evaluation::of_bits(const Expression& expression) {
  const std::int64_t a = number(expression.first);
  const std::int64_t b = expression.second == kNoExpression ? 0 : number(expression.second);
  switch (expression.op) {
    case Operator::log2:
      if (a < 1) return refuse(expression, "log2 of a number that is not positive", a);
      return std::bit_width(static_cast<std::uint64_t>(a)) - 1;
    case Operator::ceil_log2:
      if (a < 1) return refuse(expression, "ceil_log2 of a number that is not positive", a);
      return std::bit_width(static_cast<std::uint64_t>(a - 1));
    case Operator::pow2:
      if (a < 0) return refuse(expression, "pow2 of a negative number", a);
      return a > 62 ? overflow(expression) : std::int64_t{1} << a;
    case Operator::popcount:
      if (a < 0) return refuse(expression, "popcount of a negative number", a);
      return std::popcount(static_cast<std::uint64_t>(a));
    case Operator::exclusive_or: return a ^ b;
    case Operator::bit_and: return a & b;
    case Operator::bit_or: return a | b;
    case Operator::shift_left: {
      std::int64_t result = 0;
      if (b < 0) return refuse(expression, "shift by a negative number", b);
      if (a == 0) return 0;
      if (b > 62 || __builtin_mul_overflow(a, std::int64_t{1} << b, &result)) return overflow(expression);
      return result;
    }
    case Operator::shift_right:
      if (b < 0) return refuse(expression, "shift by a negative number", b);
      return a >> std::min<std::int64_t>(b, 63);
    case Operator::gcd:
      if (a == std::numeric_limits<std::int64_t>::min() || b == std::numeric_limits<std::int64_t>::min())
        return overflow(expression);
      return std::gcd(a, b);
    default: WEFT_CHECK(false, "an expression that is not a number"); return 0;
  }
}

std::int64_t Evaluation::extreme(const Expression& expression) {
  std::int64_t result = number(syntax_.operands[expression.first]);
  for (std::int32_t i = 1; i < expression.operand_count; ++i) {
    const std::int64_t other = number(syntax_.operands[expression.first + i]);
    result = expression.op == Operator::minimum ? std::min(result, other) : std::max(result, other);
  }
  return result;
}

// A list is nearly always a parameter, which is read in place. Any other list is built first.
std::int64_t Evaluation::of_list(const Expression& expression) {
  const Expression& source = syntax_.expressions[expression.first];
  List made;
  if (source.op != Operator::list_parameter && !made.set(list(expression.first))) return overflow(expression);
  const List& asked = source.op == Operator::list_parameter ? lists_[source.value] : made;
  const auto size = static_cast<std::int64_t>(asked.items.size());
  if (expression.op == Operator::length) return size;
  if (expression.op == Operator::sum && expression.second == kNoExpression)
    return asked.sums.empty() ? 0 : asked.sums.back();
  const std::int64_t at = number(expression.second);
  const std::int64_t most = expression.op == Operator::sum ? size : size - 1;
  if (at < 0 || at > most)
    return refuse(expression, fmt::format("list index out of range for {} numbers", size), at);
  return expression.op == Operator::sum ? asked.sums[at] : asked.items[at];
}

std::int64_t Evaluation::call(const Expression& expression) {
  if (failed() || !spend(expression.span)) return 0;
  if (depth_ >= kDeepestCall) return refuse(expression, "function calls are nested too deeply", depth_ + 1);
  std::array<std::int64_t, kMostFunctionParameters> values{};
  for (std::int32_t i = 0; i < expression.operand_count; ++i)
    values[i] = number(syntax_.operands[expression.first + i]);
  if (failed()) return 0;
  const std::int64_t* const outer = arguments_;
  arguments_ = values.data();
  ++depth_;
  const std::int64_t result = number(syntax_.functions[expression.value].body);
  --depth_;
  arguments_ = outer;
  return result;
}

std::string Evaluation::word(ExpressionId id) {
  const Expression& expression = syntax_.expressions[id];
  switch (expression.op) {
    case Operator::word: return syntax_.words[expression.value];
    case Operator::word_parameter: return words_[expression.value];
    default: return word(number(expression.first) != 0 ? expression.second : expression.third);
  }
}

std::vector<std::int64_t> Evaluation::list(ExpressionId id) {
  const Expression& expression = syntax_.expressions[id];
  switch (expression.op) {
    case Operator::list_parameter: {
      const std::vector<std::int64_t>& items = lists_[expression.value].items;
      spend(expression.span, static_cast<std::int64_t>(items.size()));
      return items;
    }
    case Operator::list: {
      std::vector<std::int64_t> result;
      for (std::int32_t i = 0; i < expression.operand_count; ++i)
        result.push_back(number(syntax_.operands[expression.first + i]));
      return result;
    }
    case Operator::repeat: {
      const std::int64_t value = number(expression.first), times = number(expression.second);
      if (times < 0 || times > kLongestList) {
        refuse(expression, "the list is too long", times);
        return {};
      }
      if (!spend(expression.span, times)) return {};
      return std::vector<std::int64_t>(static_cast<std::size_t>(times), value);
    }
    default: return list(number(expression.first) != 0 ? expression.second : expression.third);
  }
}

Argument Evaluation::argument(ExpressionId id, ParameterType type) {
  switch (type) {
    case ParameterType::word: return word(id);
    case ParameterType::list: return list(id);
    default: return number(id);
  }
}

bool Evaluation::fail(Span span, std::string message, std::string hint) {
  if (failed()) return false;
  progress_.error = user_error(std::move(message), std::move(hint), span);
  progress_.error->text = syntax_.text;
  return false;
}

std::int64_t Evaluation::overflow(const Expression& expression) {
  const auto id = static_cast<ExpressionId>(&expression - syntax_.expressions.data());
  fail(expression.span, fmt::format("overflows 64 bits: {}", source(id)), variables({id}));
  return 0;
}

std::int64_t Evaluation::refuse(const Expression& expression, std::string_view what, std::int64_t value) {
  const auto id = static_cast<ExpressionId>(&expression - syntax_.expressions.data());
  fail(expression.span, fmt::format("{}: {}", what, value), variables({id}));
  return 0;
}

bool Evaluation::out_of_work(Span span) {
  return fail(span, fmt::format("{} runs too long", syntax_.name),
              "does a WHILE end? weft collective check --effort N lets it run N times as long");
}

std::string_view Evaluation::source(ExpressionId id) const {
  const Span place = span(id);
  return std::string_view(*syntax_.text).substr(place.offset, place.length);
}

std::string Evaluation::variables(std::initializer_list<ExpressionId> ids) const {
  std::vector<std::string> found;
  for (const ExpressionId id : ids)
    if (id != kNoExpression) find_variables(id, found);
  return fmt::format("{}", fmt::join(found, ", "));
}

void Evaluation::find_variables(ExpressionId id, std::vector<std::string>& found) const {
  constexpr std::size_t kMost = 8;
  const Expression& expression = syntax_.expressions[id];
  const bool is_variable = expression.op == Operator::variable;
  if (is_variable || (expression.op == Operator::argument && arguments_)) {
    const std::int64_t value = is_variable ? slots_[expression.value] : arguments_[expression.value];
    std::string text = fmt::format("{} = {}", syntax_.names[expression.name], value);
    if (found.size() < kMost && std::ranges::find(found, text) == found.end())
      found.push_back(std::move(text));
    return;
  }
  if (expression.op == Operator::word_parameter) {
    found.push_back(fmt::format("{} = '{}'", syntax_.names[expression.name], words_[expression.value]));
    return;
  }
  if (expression.operand_count > 0) {
    for (std::int32_t i = 0; i < expression.operand_count; ++i)
      find_variables(syntax_.operands[expression.first + i], found);
    return;
  }
  // A list or call may have no operands, and then `first` is not an expression.
  if (expression.op == Operator::list || expression.op == Operator::call) return;
  for (const ExpressionId operand : {expression.first, expression.second, expression.third})
    if (operand != kNoExpression) find_variables(operand, found);
}

}  // namespace weft::collective
