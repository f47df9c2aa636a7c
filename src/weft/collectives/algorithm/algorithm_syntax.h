// weft/collectives/algorithm/algorithm_syntax.h -- a parsed algorithm with names resolved to slots.
//
//   LET from = (block + step) MOD ranks         slots: ranks 0, block 3, step 2, from 4
//
//   expressions   0  variable 3      block
//                 1  variable 2      step
//                 2  add 0 1
//                 3  variable 0      ranks
//                 4  modulo 2 3
//   statement     Assignment{slot 4, value 4}
//
// trace() walks the statements and reads variables by slot; print() takes the names from
// Expression::name. Children precede their parents in the table.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "weft/base/result.h"
#include "weft/collectives/algorithm/algorithm.h"
#include "weft/collectives/chunks/collective.h"

namespace weft::collective {

using ExpressionId = std::int32_t;
inline constexpr ExpressionId kNoExpression = -1;

enum class Operator : std::uint8_t {
  number,    // value
  word,      // words[value]
  list,      // operands: [a, b, c]
  variable,  // slot value
  argument,  // function parameter `value`
  word_parameter,
  list_parameter,
  // Binary operators.
  logical_or,
  logical_and,
  equal,
  not_equal,
  less,
  less_equal,
  greater,
  greater_equal,
  same_word,
  other_word,
  add,
  subtract,
  multiply,
  divide,
  modulo,
  // Unary operators.
  logical_not,
  negate,
  // IF first THEN second ELSE third.
  choose,
  // Functions: minimum, maximum and call take any number of operands, the others one or two.
  minimum,
  maximum,
  absolute,
  log2,
  ceil_log2,
  pow2,
  exclusive_or,
  bit_and,
  bit_or,
  shift_left,
  shift_right,
  popcount,
  gcd,
  sum,     // of a list, or of its first n items
  length,  // of a list
  item,    // list[index]
  repeat,  // a list: one number n times
  call     // calls functions[value]
};

struct Expression {
  Operator op = Operator::number;
  std::int32_t first = kNoExpression, second = kNoExpression, third = kNoExpression;
  std::int32_t operand_count = 0;  // list, minimum, maximum, call: number of operands from operands[first]
  std::int32_t name = -1;          // in `names`: spelling of a variable, argument or parameter
  std::int64_t value = 0;
  Span span;
};

// The buffer of a place. `data` is the memory that input and output share in place.
enum class PlaceBuffer : std::uint8_t { input, output, scratch, data };

struct PlaceSyntax {
  PlaceBuffer buffer = PlaceBuffer::data;
  ExpressionId index = kNoExpression, rank = kNoExpression;
  Span span;
};

struct Statement;
using Block = std::vector<Statement>;

struct Assignment {
  std::int32_t slot = 0, name = 0;
  ExpressionId value = kNoExpression;
  bool declares = true;  // LET; false: := to a declared variable
};

struct ForLoop {
  std::int32_t slot = 0, name = 0;
  ExpressionId from = kNoExpression, to = kNoExpression, by = kNoExpression;
  Block body;
};

struct WhileLoop {
  ExpressionId condition = kNoExpression;
  Block body;
};

struct Branch {
  struct Arm {
    ExpressionId condition = kNoExpression;  // none: ELSE
    Block body;
  };
  std::vector<Arm> arms;
};

struct Transfer {
  Move::Verb verb = Move::Verb::copy;
  PlaceSyntax from, to;
  ExpressionId count = kNoExpression, channel = kNoExpression;
};

// RANK i AT rank, CHUNK j AT buffer[index].
struct Call {
  struct NamedArgument {
    std::string name;
    ExpressionId value = kNoExpression;
    ParameterType type = ParameterType::number;
    Span span;
  };
  // The location of chunk j of the callee's rank i in the caller's memory.
  struct Mapping {
    std::int32_t slot = 0, name = 0;
    PlaceBuffer buffer = PlaceBuffer::data;
    ExpressionId index = kNoExpression;
  };
  std::string callee;  // the full name, or the kind if `scheme` is given
  ExpressionId scheme = kNoExpression;
  std::vector<NamedArgument> arguments;
  std::int32_t rank_slot = 0, rank_name = 0;
  ExpressionId rank = kNoExpression;
  std::optional<Mapping> chunk;          // for an in-place callee
  std::optional<Mapping> input, output;  // for an out-of-place callee
  ExpressionId channel = kNoExpression;
};

struct Requirement {
  ExpressionId condition = kNoExpression;
  std::string message;
};

// WANT output[i] AT r = input[j] AT s + ...
struct WantClause {
  PlaceSyntax output;
  std::vector<PlaceSyntax> inputs;
};

struct Statement {
  Span span;
  std::variant<Assignment, ForLoop, WhileLoop, Branch, Transfer, Call, Requirement, WantClause> does;
};

struct FunctionSyntax {
  std::string name;
  std::vector<std::int32_t> parameters;  // names
  ExpressionId body = kNoExpression;
};

struct AlgorithmSyntax {
  std::string name;
  std::vector<Algorithm::Parameter> parameters;
  std::vector<ExpressionId> defaults;          // per parameter; kNoExpression: required
  std::vector<std::int32_t> parameter_places;  // slot, word or list index, per parameter

  Kind kind = Kind::custom;
  bool in_place = false;
  ExpressionId chunks = kNoExpression, root = kNoExpression, peer = kNoExpression, counts = kNoExpression;
  ExpressionId inputs = kNoExpression, outputs = kNoExpression;  // custom collectives only
  ExpressionId scratch = kNoExpression;
  std::int32_t scratch_slot = -1, scratch_name = -1;  // variable of PER; -1: the same on every rank
  std::vector<ExpressionId> where;
  ExpressionId steps = kNoExpression, wire = kNoExpression;
  std::vector<FunctionSyntax> functions;
  Block ensure, body;

  std::vector<Expression> expressions;
  std::vector<ExpressionId> operands;
  std::vector<std::string> names, words;
  std::int32_t slots = 0, word_slots = 0, list_slots = 0;
  std::shared_ptr<const std::string> text;
};

// A built-in function: its name and number of operands.
struct BuiltinFunction {
  std::string_view name;
  Operator op;
  std::int32_t least, most;
};
std::span<const BuiltinFunction> builtin_functions();

}  // namespace weft::collective
