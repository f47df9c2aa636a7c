// weft/language/syntax_expression.h -- the syntax tree of expressions.
//
//   relu(x) + 2 * b    -->    Chain Call relu(x), (+ Chain 2, (* b))
//
// An Expression is one of eleven kinds: switch on `kind`, then `as<Call>()`.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "weft/base/check.h"
#include "weft/base/result.h"
#include "weft/language/syntax_value.h"

namespace weft::language::syntax {

enum class ExpressionKind : std::uint8_t {
  literal,
  boolean,
  name,
  negate,
  invert,
  chain,
  comparison,
  between,
  choice,
  cast,
  call
};

// In order of precedence, loosest first.
enum class Operator : std::uint8_t {
  logical_or,
  logical_and,
  equal,
  not_equal,
  less,
  less_equal,
  greater,
  greater_equal,
  add,
  subtract,
  multiply,
  divide,
  remainder
};

constexpr std::string_view spelling(Operator op) {
  constexpr std::string_view kSpellings[] = {"OR", "AND", "=", "<>", "<", "<=", ">",
                                             ">=", "+",   "-", "*",  "/", "%"};
  return kSpellings[static_cast<std::size_t>(op)];
}

// Base of all expression kinds. Each kind has only the fields shown.
struct Expression {
  ExpressionKind kind;
  Span span;

  // REQUIRES: kind == Kind::kKind
  template <class Kind>
  const Kind& as() const {
    WEFT_CHECK(kind == Kind::kKind);
    return static_cast<const Kind&>(*this);
  }
  // Null if it is of another kind.
  template <class Kind>
  const Kind* if_a() const {
    return kind == Kind::kKind ? static_cast<const Kind*>(this) : nullptr;
  }
};

struct Literal : Expression {  // 0.02, inf
  static constexpr auto kKind = ExpressionKind::literal;
  double value;
  std::int64_t whole;  // the exact value, if is_whole
  bool is_whole;
};

struct Boolean : Expression {  // true, false
  static constexpr auto kKind = ExpressionKind::boolean;
  bool truth;
};

struct NameUse : Expression {  // a tensor, an index or a size; the binder decides
  static constexpr auto kKind = ExpressionKind::name;
  std::string_view name;
};

struct Negate : Expression {  // -x; a plus sign is dropped
  static constexpr auto kKind = ExpressionKind::negate;
  const Expression* operand;
};

struct Invert : Expression {  // NOT x
  static constexpr auto kKind = ExpressionKind::invert;
  const Expression* operand;
};

// Operators of one precedence, left-associative: a - b + c is {a, [(-, b), (+, c)]}. The operators
// are all OR, all AND, a mix of + -, or a mix of * / %.
struct Term {
  Operator op;
  Span op_span;
  const Expression* operand;
};
struct Chain : Expression {
  static constexpr auto kKind = ExpressionKind::chain;
  const Expression* first;
  std::span<const Term> rest;
};

struct Comparison : Expression {  // left < right; comparisons do not chain
  static constexpr auto kKind = ExpressionKind::comparison;
  Operator op;
  Span op_span;
  const Expression* left;
  const Expression* right;
};

struct Between : Expression {  // value BETWEEN low AND high, inclusive
  static constexpr auto kKind = ExpressionKind::between;
  const Expression* value;
  const Expression* low;
  const Expression* high;
};

struct When {
  const Expression* condition;
  const Expression* result;
};
struct Choice : Expression {  // CASE WHEN .. THEN .. ELSE .. END
  static constexpr auto kKind = ExpressionKind::choice;
  std::span<const When> whens;
  const Expression* otherwise;  // null without ELSE
};

struct Cast : Expression {  // CAST(operand AS dtype)
  static constexpr auto kKind = ExpressionKind::cast;
  const Expression* operand;
  Name dtype;
};

struct Argument {
  Name label;  // stride in stride => 2; absent for a positional argument
  const Expression* value;
};
struct Call : Expression {  // softmax(x) OVER (PARTITION BY b, s)
  static constexpr auto kKind = ExpressionKind::call;
  Name function;
  std::span<const Argument> arguments;  // may be empty
  bool windowed;                        // has OVER
  std::span<const Name> partition;      // empty for OVER () and without OVER
};

// A size is an Expression of only integer literals, names and chains of + - * /.
using SizeExpression = Expression;

}  // namespace weft::language::syntax
