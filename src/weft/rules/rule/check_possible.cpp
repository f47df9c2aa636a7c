#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "weft/rules/rule/check_rule.h"
#include "weft/rules/rule/evaluate_number.h"
#include "weft/rules/rule/print_rule.h"

namespace weft::rule {
namespace {

constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min(),
                       kMost = std::numeric_limits<std::int64_t>::max();

// What the conditions leave of one number.
struct Left {
  std::int64_t low = kLeast, high = kMost;
  bool even = false, odd = false;
  std::set<std::int64_t> not_these = {};

  bool possible() const {
    if (even && odd) return false;
    std::int64_t first = low, last = high;
    const auto excluded = [&](std::int64_t value) {
      return not_these.contains(value) || (even && value % 2 != 0) || (odd && value % 2 == 0);
    };
    while (first < last && excluded(first)) ++first;  // at most twice the conditions: then one is free
    return first <= last && !excluded(first);
  }
};

std::optional<std::int64_t> literal(const Number& number) {
  if (number.kind == Number::Kind::literal) return number.literal;
  if (number.parts.size() != 2) return std::nullopt;
  const auto a = literal(number.parts[0]), b = literal(number.parts[1]);
  if (!a || !b) return std::nullopt;
  return combine(number.kind, *a, *b);
}

bool holds(Condition::Kind kind, std::int64_t a, std::int64_t b) {
  switch (kind) {
    case Condition::Kind::equal: return a == b;
    case Condition::Kind::unequal: return a != b;
    case Condition::Kind::less: return a < b;
    case Condition::Kind::less_equal: return a <= b;
    case Condition::Kind::divides: return combine(Number::Kind::remainder, b, a) == 0;
    case Condition::Kind::even: return a % 2 == 0;
    case Condition::Kind::odd: return a % 2 != 0;
    default: return true;
  }
}

// `number` against a literal that stands on its right, or on its left.
void narrow_range(Left& left, Condition::Kind kind, std::int64_t bound, bool bound_is_right) {
  switch (kind) {
    case Condition::Kind::equal:
      left.low = std::max(left.low, bound);
      left.high = std::min(left.high, bound);
      break;
    case Condition::Kind::unequal: left.not_these.insert(bound); break;
    case Condition::Kind::less:
      if (bound_is_right)
        left.high = std::min(left.high, bound == kLeast ? kLeast : bound - 1);
      else
        left.low = std::max(left.low, bound == kMost ? kMost : bound + 1);
      break;
    case Condition::Kind::less_equal:
      if (bound_is_right)
        left.high = std::min(left.high, bound);
      else
        left.low = std::max(left.low, bound);
      break;
    default: break;
  }
}

bool is_positive(Number::Kind kind) {
  return kind == Number::Kind::size || kind == Number::Kind::elements || kind == Number::Kind::ranks;
}

}  // namespace

Status check_possible(const Rule& rule) {
  std::map<std::string, Left> numbers;
  const auto impossible = [&](const Condition& condition) {
    return user_error(fmt::format("the guard of {} can never hold: {}", rule.name, print({condition}, rule)));
  };
  const auto of = [&](const Number& number) -> Left& {
    const auto [found, is_new] = numbers.try_emplace(print(number, rule));
    if (is_new && is_positive(number.kind)) found->second.low = 1;
    return found->second;
  };
  for (const Condition& condition : rule.when) {
    const auto a = literal(condition.left), b = literal(condition.right);
    switch (condition.kind) {
      case Condition::Kind::even:
      case Condition::Kind::odd:
        if (a && !holds(condition.kind, *a, 0)) return impossible(condition);
        if (a) break;
        (condition.kind == Condition::Kind::even ? of(condition.left).even : of(condition.left).odd) = true;
        if (!of(condition.left).possible()) return impossible(condition);
        break;
      case Condition::Kind::distinct:
        if (condition.value == condition.other) return impossible(condition);
        break;
      case Condition::Kind::same_dtype:
      case Condition::Kind::real:
      case Condition::Kind::replicated:
      case Condition::Kind::whole: break;
      default:
        if (a && b && !holds(condition.kind, *a, *b)) return impossible(condition);
        if (a.has_value() == b.has_value()) {
          const bool strict =
              condition.kind == Condition::Kind::less || condition.kind == Condition::Kind::unequal;
          if (!a && strict && condition.left == condition.right) return impossible(condition);
          break;
        }
        Left& left = of(a ? condition.right : condition.left);
        narrow_range(left, condition.kind, a ? *a : *b, b.has_value());
        if (!left.possible()) return impossible(condition);
    }
  }
  return {};
}

}  // namespace weft::rule
