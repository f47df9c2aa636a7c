// weft/rules/rule/syntax.h -- the syntax tree of a rule, before names are resolved.
//
//   p = slice(c, along=n, begin=0, end=size(v, n))
//
//   Statement{names: [p], term: Term{slice, operands: [c],
//                                    attributes: [along: name n, begin: 0, end: call size]}}
//
// A rule that holds both ways is parsed once and resolved twice, once in each direction.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"

namespace weft::rule::syntax {

struct Word {
  std::string_view text;  // a view into the file
  Span span;
};

// The value of an attribute, or an operand of a guard.
struct Expression {
  enum class Kind : std::uint8_t {
    number,      // 3
    real,        // 0.5
    name,        // stride
    quoted,      // 'sum'
    call,        // size(v, n)
    arithmetic,  // a + b; unary minus is 0 - a
    list         // [B, n: size(v, n)]: names; `parts` has one per name, `none` if it has no size
  };
  Kind kind = Kind::number;
  Span span;
  std::int64_t number = 0;
  double real = 0;
  Word name;  // of a name, a quoted word (without quotes), a call
  char op = '+';
  std::vector<Expression> parts;  // of a call, arithmetic, a list
  std::vector<Word> names;        // of a list
  bool none = false;
};

struct Term {
  Word name;          // of a value, an operator or an operator variable
  bool call = false;  // with parentheses
  std::vector<Term> operands;
  struct Attribute {
    Word name;
    Expression value;
  };
  std::vector<Attribute> attributes;
  Span span;
};

struct Statement {
  std::vector<Word> names;
  Term term;
};

// `a < b`, or a call such as even(a) or of a named guard.
struct Comparison {
  enum class Kind : std::uint8_t { fact, equal, unequal, less, less_equal };
  Kind kind = Kind::fact;
  Expression left, right;  // for a fact, `left` is the call
  Span span;
};

struct Guard {
  Word name;
  std::vector<Word> parameters;
  std::vector<Comparison> all;
};

struct Input {
  Word name;
  std::vector<Word> list;
  bool in_order = false;
  Word layout, of, axis;  // partial, sum, a
};

struct Declaration {
  Word of, name;  // unary f, binary g, word k
};

struct Rule {
  Word name, why, cite;
  bool normalize = false, both_ways = false;
  std::uint32_t line = 0;
  std::vector<Declaration> any;
  std::vector<Input> given;
  std::vector<Statement> left, right;
  std::vector<Comparison> when;
};

struct File {
  std::vector<Guard> guards;
  std::vector<Rule> rules;
};

// The words in the result are views into `text`.
Result<File> parse(std::string_view text);

}  // namespace weft::rule::syntax
