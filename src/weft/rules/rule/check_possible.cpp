#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "weft/rules/rule/check_rule.h"
#include "weft/rules/rule/guards.h"
#include "weft/rules/rule/print_rule.h"

namespace weft::rule {
namespace {

constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min(),
                       kMost = std::numeric_limits<std::int64_t>::max();

// The values of a number that the conditions allow.
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
    while (first < last && excluded(first)) ++first;  // takes at most twice as many steps as conditions
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

// Applies a comparison of a number with a literal on its right or left.
void narrow_range(Left& left, Condition::Kind kind, std::int64_t bound, bool bound_is_right) {
  switch (kind) {
    case Condition::Kind::equal:
      left.low = std::max(left.low, bound);
      left.high = std::min(left.high, bound);
      break;
    case Condition::Kind::unequal: left.not_these.insert(bound); break;
    case Condition::Kind::even: left.even = true; break;
    case Condition::Kind::odd: left.odd = true; break;
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
    const GuardWord& word = guard_word(condition.kind);
    if (word.is_strict &&
        (word.compare != nullptr ? condition.left == condition.right : condition.value == condition.other))
      return impossible(condition);
    if (word.compare == nullptr) continue;
    const auto a = literal(condition.left), b = literal(condition.right);
    if (a && b && !word.compare(*a, *b)) return impossible(condition);
    if (a.has_value() == b.has_value()) continue;
    Left& left = of(a ? condition.right : condition.left);
    narrow_range(left, condition.kind, a ? *a : *b, b.has_value());
    if (!left.possible()) return impossible(condition);
  }
  return {};
}

}  // namespace weft::rule
