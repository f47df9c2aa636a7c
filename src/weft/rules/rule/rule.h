// weft/rules/rule/rule.h -- a rewrite rule: what to find in a plan, and what may stand there instead.
//
//   rule merge_products explore
//     why   one wide product keeps the multipliers busier than two narrow ones
//     cite  TASO, SOSP 2019
//     given x[B, K], v[K, n], w[K, m]
//     left  p = contract(x, v, to=[B, n])
//           q = contract(x, w, to=[B, m])
//     right c = contract(x, concat(v, rename(w, from=[m], to=[n]), along=n), to=[B, n])
//           p = slice(c, along=n, begin=0, end=size(v, n))
//           q = rename(slice(c, along=n, begin=size(v, n), end=size(v, n) + size(w, m)), from=[n], to=[m])
//     when  size(v, n) <= 4096
//
// A lower-case index variable stands for one index, an upper-case one for any number of them, none
// included. An index of a plan belongs to the variables that occur in just those values that have it:
// above, what x, p and q share is B, what x, v and w share is K. Two variables may stand for the same
// index where no value has both, unless `when distinct(n, m)` forbids it. A side is a list of nodes over the
// operators of ops/; `left` and `right` define the same results. An attribute that the left leaves out has
// its default; a name there binds it. The order of an input's indices is any, unless it is said to be given
// `in order`; that of a result follows the left's: a transpose is put in where the right differs.
//
// A file may name guards, which rules then use like words of the language, and a rule may hold both ways:
//
//   guard same_padding(r, p): r = 2 * p + 1
//
//   rule pointwise_past_all_gather explore both ways       # makes a second rule, NAME.reverse
//     why   before the gather there is less to compute
//     any   unary f
//     given x[I, n]
//     left  y = f(all-gather(x, axis=a, along=n))
//     right y = all-gather(f(x), axis=a, along=n)
#pragma once
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "weft/base/result.h"
#include "weft/plan/graph/attribute.h"
#include "weft/plan/graph/layout.h"
#include "weft/plan/graph/operator.h"

namespace weft::rule {

enum class Kind : std::uint8_t { normalize, explore };  // always taken, or for the cost to judge

std::string_view name(Kind kind);

struct IndexVariable {
  std::string name;
  bool many = false;  // upper case

  friend bool operator==(const IndexVariable&, const IndexVariable&) = default;
};

using IndexList = std::vector<std::uint16_t>;  // into Rule::indices

inline bool has(const IndexList& list, std::uint16_t index) {
  return std::ranges::find(list, index) != list.end();
}

// A whole number that a match determines.
struct Number {
  enum class Kind : std::uint8_t {
    literal,
    variable,
    size,
    elements,
    ranks,
    add,
    subtract,
    multiply,
    divide,
    remainder,
    open  // not said: of `type=[B, n]`, where n has whatever size it has
  };
  Kind kind = Kind::literal;
  std::int64_t literal = 0;
  std::uint16_t variable = 0;  // of `variable`: into Rule::variables; of `ranks`: the mesh axis' variable
  std::uint16_t value = 0;    // of `size(x, n)` and `elements(x)`: into the left side's values (inputs first)
  std::uint16_t index = 0;    // of `size`: into Rule::indices; of an upper-case one: the product of its sizes
  std::vector<Number> parts;  // of arithmetic: two

  friend bool operator==(const Number&, const Number&) = default;
};

// What an attribute must be (on the left) or is made (on the right).
struct AttributeTerm {
  enum class Kind : std::uint8_t { standard, number, real, word, variable, indices, dtype };
  Kind kind = Kind::standard;  // its default
  Number number;
  double real = 0;
  std::string word;
  std::uint16_t variable = 0;  // binds, or must equal what it was bound to
  IndexList indices;           // `along=n` is a list of one
  // Of `broadcast(x, type=[B, n: size(v, n)])` and `split(.., into=[h: heads, e: width])`: one an index.
  // One that is left open is any on the left; on the right it is the operand's, or else that of the first
  // value of the left that has the index. The dtype of such a type is the first operand's.
  std::vector<Number> sizes;
  plan::DType dtype = plan::DType::f32;

  friend bool operator==(const AttributeTerm&, const AttributeTerm&) = default;
};

// A name that binds an attribute's value. A mesh axis is a word.
struct Variable {
  std::string name;
  plan::AttributeKind kind = plan::AttributeKind::integer;

  friend bool operator==(const Variable&, const Variable&) = default;
};

// `any unary f`: stands for one operator of a class, the same wherever it occurs.
struct OperatorVariable {
  enum class Class : std::uint8_t { unary, binary };  // pointwise of one and two operands
  std::string name;
  Class of = Class::unary;

  friend bool operator==(const OperatorVariable&, const OperatorVariable&) = default;
};

struct PatternNode {
  const plan::Operator* op = nullptr;           // null: an operator variable
  std::uint16_t operator_variable = 0;          // into Rule::operators
  std::vector<std::uint16_t> operands;          // values of this side
  std::vector<AttributeTerm> attributes;        // one for each of the operator's, in its order
  std::uint16_t first_result = 0, results = 1;  // values of this side

  friend bool operator==(const PatternNode&, const PatternNode&) = default;
};

// The values of a side are the rule's inputs, then the results of its nodes, in order.
struct Side {
  std::vector<PatternNode> nodes;
  std::vector<IndexList> lists;  // of each value, where it is known
  std::vector<bool> has_list;
  std::vector<std::string> names;  // of each value; empty where the text gives none
  std::size_t values = 0;

  friend bool operator==(const Side&, const Side&) = default;
};

struct RuleInput {
  std::string name;
  IndexList list;
  bool in_order = false;  // `x[b, c, h, w] in order`: its indices are just these, in this order
  // `x[I] partial(sum) on a`. The index of `sliced(n)` is n's place in Rule::indices.
  std::optional<plan::AxisLayout> layout;
  std::uint16_t axis = 0;  // of the layout: into Rule::variables

  friend bool operator==(const RuleInput&, const RuleInput&) = default;
};

// Two numbers compared, or a fact about a value.
struct Condition {
  enum class Kind : std::uint8_t {
    equal,
    unequal,
    less,
    less_equal,
    divides,
    even,
    odd,
    same_dtype,
    real,
    replicated,
    whole,  // no mesh axis slices that index of the value
    distinct
  };
  Kind kind = Kind::equal;
  Number left, right;
  // Of facts about values: of the left. Of `whole` the other is into Rule::indices, of `distinct` both are.
  std::uint16_t value = 0, other = 0;

  friend bool operator==(const Condition&, const Condition&) = default;
};

struct Rule {
  std::string name, why, cite;
  Kind kind = Kind::explore;
  std::string file;
  std::uint32_t line = 0;

  std::vector<IndexVariable> indices;
  std::vector<Variable> variables;
  std::vector<OperatorVariable> operators;
  std::vector<RuleInput> inputs;
  Side left, right;
  struct Output {
    std::string name;
    std::uint16_t left = 0, right = 0;  // values of the sides

    friend bool operator==(const Output&, const Output&) = default;
  };
  std::vector<Output> outputs;
  std::vector<Condition> when;  // all must hold

  friend bool operator==(const Rule&, const Rule&) = default;
};

// `text` as rules, or the first mistake with its place. `file` is kept in the rules and named in errors.
Result<std::vector<Rule>> parse_rules(std::string_view text, std::string_view file,
                                      const plan::OperatorSet& operators);

// The rule as text that parses to an equal rule.
std::string print(const Rule& rule);
std::string print(const std::vector<Condition>& conditions,
                  const Rule& rule);  // "size(v, n) <= 4096 and groups = 1"

}  // namespace weft::rule
