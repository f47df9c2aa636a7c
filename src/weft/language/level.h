// weft/language/level.h -- operator precedence.
#pragma once
#include <cstdint>

#include "weft/language/syntax.h"

namespace weft::language {

// Loosest first; a tighter level compares greater.
enum class Level : std::uint8_t {
  none,
  logical_or,
  logical_and,
  logical_not,
  comparison,
  sum,
  product,
  sign,
  operand
};

constexpr Level tighter(Level level) { return static_cast<Level>(static_cast<int>(level) + 1); }

constexpr Level level_of(syntax::Operator op) {
  using enum syntax::Operator;
  if (op == logical_or) return Level::logical_or;
  if (op == logical_and) return Level::logical_and;
  if (op <= greater_equal) return Level::comparison;
  return op <= subtract ? Level::sum : Level::product;
}

}  // namespace weft::language
