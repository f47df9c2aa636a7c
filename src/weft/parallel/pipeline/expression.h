// weft/parallel/pipeline/expression.h -- numeric expressions of schedule texts.
//
// + - * /, DIV and MOD (rounded down), comparisons and AND, OR, NOT (1 and 0), min, max, floor,
// ceil, IF a THEN b ELSE c. All values are reals. Names are bound to slots when the text is parsed.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"

namespace weft::pipeline {

// Tokens of a schedule's text. `--` starts a comment.
struct Word {
  enum class Kind : std::uint8_t { name, number, sign, end };
  Kind kind = Kind::end;
  std::string text;
  double number = 0;
  Span span;
};
Result<std::vector<Word>> split(std::string_view text);

class Expression {
 public:
  double value(const std::vector<double>& slots) const { return nodes_.empty() ? 0 : value(root_, slots); }
  bool empty() const { return nodes_.empty(); }

 private:
  friend class Reader;
  enum class Op : std::uint8_t {
    number,
    slot,
    add,
    subtract,
    multiply,
    divide,
    whole,
    modulo,
    less,
    less_equal,
    equal,
    differs,
    both,
    either,
    negate,
    minimum,
    maximum,
    floor,
    ceil,
    choose
  };
  struct Node {
    Op op = Op::number;
    double number = 0;
    std::int32_t slot = 0;
    std::int32_t a = -1, b = -1, c = -1;
  };
  double value(std::int32_t node, const std::vector<double>& slots) const;

  std::vector<Node> nodes_;
  std::int32_t root_ = -1;
};

// Reads tokens in order; knows the variable names.
class Reader {
 public:
  explicit Reader(std::vector<Word> words) : words_(std::move(words)) {}

  const Word& peek() const { return words_[at_]; }
  Word take();
  bool is(std::string_view text) const;  // whether it is the next token; case-sensitive
  bool accept(std::string_view text);    // consumes it if it is next
  Status expect(std::string_view text);
  Result<std::string> name(std::string_view what);

  Result<Expression> expression();
  std::int32_t slot(const std::string& name);  // of a name, new or known
  std::int32_t slots() const { return static_cast<std::int32_t>(names_.size()); }

 private:
  using Op = Expression::Op;
  Result<std::int32_t> choice(Expression& to);
  Result<std::int32_t> chain(Expression& to, int level);
  Result<std::int32_t> factor(Expression& to);
  static std::int32_t add(Expression& to, Expression::Node node);
  Error unexpected(std::string_view wanted) const;

  std::vector<Word> words_;
  std::size_t at_ = 0;
  std::vector<std::string> names_;
  int depth_ = 0;
};

}  // namespace weft::pipeline
