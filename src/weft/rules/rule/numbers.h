// weft/rules/rule/numbers.h -- builds numbers and conditions in C++: 2 * p + 1, size(x, n) <= 256.
#pragma once
#include <cstdint>
#include <utility>

#include "weft/rules/rule/rule.h"

namespace weft::rule {

inline Number literal_number(std::int64_t value) {
  Number number;
  number.literal = value;
  return number;
}

inline Number combined(Number::Kind kind, Number a, Number b) {
  Number number;
  number.kind = kind;
  number.parts = {std::move(a), std::move(b)};
  return number;
}

inline Condition comparison(Condition::Kind kind, Number left, Number right = {}) {
  Condition condition;
  condition.kind = kind;
  condition.left = std::move(left);
  condition.right = std::move(right);
  return condition;
}

}  // namespace weft::rule
