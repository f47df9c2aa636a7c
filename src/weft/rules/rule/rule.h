// weft/rules/rule/rule.h -- a rewrite rule: what to find in a plan, and what may replace it.
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
// A lower-case index variable stands for one index, an upper-case one for any number of them,
// including none. An index of a plan belongs to the variables that occur in exactly those values
// that have it: above, the indices that x, p and q share are B, those that x, v and w share are K.
// Two variables may stand for the same index if no value has both, unless `when distinct(n, m)`
// forbids it. A side is a list of nodes over the operators of ops/; `left` and `right` define the
// same results. An attribute that the left omits has its default; a name there binds it. An input's
// indices may be in any order, unless it is declared `in order`. Results have the left's index
// order: a transpose is added if the right's differs.
//
// A file may define guards, which rules then use like built-in words, and a rule may hold both
// ways:
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

enum class Kind : std::uint8_t { normalize, explore };  // always applied, or decided by cost

std::string_view name(Kind kind);

struct IndexVariable {
  std::string name;
  bool many = false;  // upper case

  friend bool operator==(const IndexVariable&, const IndexVariable&) = default;
};

using IndexList = std::vector<std::uint16_t>;  // indices into Rule::indices

inline bool has(const IndexList& list, std::uint16_t index) {
  return std::ranges::find(list, index) != list.end();
}

// An integer that a match determines.
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
    open  // not stated: in `type=[B, n]`, n has whatever size it has
  };
  Kind kind = Kind::literal;
  std::int64_t literal = 0;
  std::uint16_t variable = 0;  // variable: index into Rule::variables; ranks: the mesh axis's variable
  std::uint16_t value = 0;     // size(x, n), elements(x): index into the left's values (inputs first)
  std::uint16_t index = 0;     // size: index into Rule::indices; upper case: the product of its sizes
  std::vector<Number> parts;   // the two operands of arithmetic

  friend bool operator==(const Number&, const Number&) = default;
};

// What an attribute must be (on the left) or becomes (on the right).
struct AttributeTerm {
  enum class Kind : std::uint8_t { standard, number, real, word, variable, indices, dtype };
  Kind kind = Kind::standard;  // standard: the default
  Number number;
  double real = 0;
  std::string word;
  std::uint16_t variable = 0;  // binds, or must equal the earlier binding
  IndexList indices;           // `along=n` is a list of one
  // The sizes in `broadcast(x, type=[B, n: size(v, n)])` and `split(.., into=[h: heads, e:
  // width])`, one per index. An open size matches any size on the left. On the right it is the
  // operand's size, or else that of the first value of the left that has the index. The dtype of
  // such a type is the first operand's.
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
  enum class Class : std::uint8_t { unary, binary };  // pointwise, with one or two operands
  std::string name;
  Class of = Class::unary;

  friend bool operator==(const OperatorVariable&, const OperatorVariable&) = default;
};

struct PatternNode {
  const plan::Operator* op = nullptr;           // null: an operator variable
  std::uint16_t operator_variable = 0;          // index into Rule::operators
  std::vector<std::uint16_t> operands;          // values of this side
  std::vector<AttributeTerm> attributes;        // one per attribute of the operator, in its order
  std::uint16_t first_result = 0, results = 1;  // values of this side

  friend bool operator==(const PatternNode&, const PatternNode&) = default;
};

// The values of a side are the rule's inputs, then the results of its nodes, in order.
struct Side {
  std::vector<PatternNode> nodes;
  std::vector<IndexList> lists;  // by value; valid if has_list
  std::vector<bool> has_list;
  std::vector<std::string> names;  // by value; empty if the text has none
  std::size_t values = 0;

  friend bool operator==(const Side&, const Side&) = default;
};

struct RuleInput {
  std::string name;
  IndexList list;
  bool in_order = false;  // `x[b, c, h, w] in order`: exactly these indices, in this order
  // `x[I] partial(sum) on a`. The index of `sliced(n)` is an index into Rule::indices.
  std::optional<plan::AxisLayout> layout;
  std::uint16_t axis = 0;  // of the layout: index into Rule::variables

  friend bool operator==(const RuleInput&, const RuleInput&) = default;
};

// A comparison of two numbers, or a property of a value.
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
  // Properties: a value of the left. whole: `other` is an index into Rule::indices; distinct: both
  // are.
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
    std::uint16_t left = 0, right = 0;  // values of each side

    friend bool operator==(const Output&, const Output&) = default;
  };
  std::vector<Output> outputs;
  std::vector<Condition> when;  // all must hold

  friend bool operator==(const Rule&, const Rule&) = default;
};

// Parses rules, or fails with the first mistake and its location. `file` is stored in the rules and
// named in errors.
Result<std::vector<Rule>> parse_rules(std::string_view text, std::string_view file,
                                      const plan::OperatorSet& operators);

// Text that parses to an equal rule.
std::string print(const Rule& rule);
std::string print(const std::vector<Condition>& conditions,
                  const Rule& rule);  // "size(v, n) <= 4096 and groups = 1"

}  // namespace weft::rule
