// Expressions, by precedence climbing, loosest first:
//
//   a OR b    a AND b    NOT a    a = b, a BETWEEN b AND c    a + b    a * b    -a    primary
//
// primary   = number | inf | true | false | name | "(" expression ")" | call
//           | CASE WHEN expression THEN expression { WHEN .. THEN .. } [ ELSE expression ] END
//           | CAST "(" expression AS name ")"
// call      = name "(" [ argument {"," argument} ] ")"
//             [ OVER "(" [ PARTITION BY name {"," name} ] ")" ]
// argument  = [ name "=>" ] expression
// size      = an expression of integers, names, + - * / and parentheses
#include <array>
#include <limits>

#include "weft/language/grammar.h"

namespace weft::language {

using namespace syntax;

namespace {

// The result of a failed production; never visible outside the parser.
constexpr Expression kNothing{ExpressionKind::boolean, {}};

}  // namespace

const Expression* Grammar::expression(Level loosest) {
  const Nest nest(*this);
  const std::uint32_t start = here();
  const Expression* left = prefix(loosest);
  for (;;) {
    const Level level = infix_level();
    if (level < loosest) return left;
    left = level == Level::comparison ? comparison(start, left) : chain(start, left, level);
  }
}

Level Grammar::infix_level() const {
  switch (token_.kind) {
    case Kind::plus:
    case Kind::minus: return Level::sum;
    case Kind::star:
    case Kind::slash:
    case Kind::percent: return Level::product;
    case Kind::equal:
    case Kind::not_equal:
    case Kind::less:
    case Kind::less_equal:
    case Kind::greater:
    case Kind::greater_equal: return Level::comparison;
    case Kind::word: break;
    default: return Level::none;
  }
  switch (token_.keyword) {
    case Keyword::kw_or: return Level::logical_or;
    case Keyword::kw_and: return Level::logical_and;
    case Keyword::kw_between: return Level::comparison;
    default: return Level::none;
  }
}

// REQUIRES: infix_level() is neither none nor that of BETWEEN
Operator Grammar::take_operator() {
  const Token token = token_;
  advance();
  switch (token.kind) {
    case Kind::plus: return Operator::add;
    case Kind::minus: return Operator::subtract;
    case Kind::star: return Operator::multiply;
    case Kind::slash: return Operator::divide;
    case Kind::percent: return Operator::remainder;
    case Kind::equal: return Operator::equal;
    case Kind::not_equal: return Operator::not_equal;
    case Kind::less: return Operator::less;
    case Kind::less_equal: return Operator::less_equal;
    case Kind::greater: return Operator::greater;
    case Kind::greater_equal: return Operator::greater_equal;
    default: return token.keyword == Keyword::kw_or ? Operator::logical_or : Operator::logical_and;
  }
}

const Expression* Grammar::chain(std::uint32_t start, const Expression* first, Level level) {
  Gather<Term> rest(*this);
  while (infix_level() == level) {
    const Span op_span = token_.span;
    const Operator op = take_operator();
    rest.add({op, op_span, expression(tighter(level))});
  }
  return make<Chain>(start, first, rest.finish());
}

const Expression* Grammar::comparison(std::uint32_t start, const Expression* left) {
  const Expression* result;
  if (accept(Keyword::kw_between)) {
    const Expression* low = expression(Level::sum);
    expect(Keyword::kw_and, "between the bounds of BETWEEN");
    const Expression* high = expression(Level::sum);
    result = make<Between>(start, left, low, high);
  } else {
    const Span op_span = token_.span;
    const Operator op = take_operator();
    const Expression* right = expression(Level::sum);
    result = make<Comparison>(start, op, op_span, left, right);
  }
  if (infix_level() == Level::comparison) fail_here("comparisons do not chain", "write a < b AND b < c");
  return result;
}

const Expression* Grammar::prefix(Level loosest) {
  const std::uint32_t start = here();
  if (accept(Kind::minus)) {
    const Nest nest(*this);
    return make<Negate>(start, prefix(Level::sign));
  }
  if (accept(Kind::plus)) {
    const Nest nest(*this);
    return prefix(Level::sign);
  }
  if (!at(Keyword::kw_not)) return primary();
  if (loosest > Level::logical_not) {
    fail_here("NOT binds looser than the operator before it", "put it in parentheses: (NOT x)");
    return &kNothing;
  }
  advance();
  return make<Invert>(start, expression(Level::logical_not));
}

const Expression* Grammar::primary() {
  const std::uint32_t start = here();
  if (at(Kind::word) || at(Kind::quoted)) {
    switch (token_.keyword) {
      case Keyword::kw_case: return choice();
      case Keyword::kw_cast: return next_.kind == Kind::left_paren ? cast() : name_or_call();
      case Keyword::kw_inf:
        advance();
        return make<Literal>(start, std::numeric_limits<double>::infinity(), 0, false);
      case Keyword::kw_true:
      case Keyword::kw_false: {
        const bool truth = at(Keyword::kw_true);
        advance();
        return make<Boolean>(start, truth);
      }
      default:
        if (!is_reserved(token_.keyword)) return name_or_call();
    }
  } else if (at(Kind::number)) {
    const Number number = take_number();
    return make<Literal>(start, number.value, number.whole, number.is_whole);
  } else if (at(Kind::left_paren)) {
    return parenthesized();
  }
  fail_expression();
  return &kNothing;
}

const Expression* Grammar::parenthesized() {
  const Span open = token_.span;
  advance();
  const Expression* inner = expression();
  if (!accept(Kind::right_paren)) fail_group(open);
  return inner;
}

const Expression* Grammar::choice() {
  const std::uint32_t start = here();
  advance();
  Gather<When> whens(*this);
  if (!at(Keyword::kw_when)) fail_keyword(Keyword::kw_when, "after CASE", "CASE WHEN x = 1 THEN ...");
  while (accept(Keyword::kw_when)) {
    const Expression* condition = expression();
    expect(Keyword::kw_then, "after the condition of WHEN");
    whens.add({condition, expression()});
  }
  const Expression* otherwise = accept(Keyword::kw_else) ? expression() : nullptr;
  expect(Keyword::kw_end, "to close CASE", "CASE WHEN x THEN y ELSE z END");
  return make<Choice>(start, whens.finish(), otherwise);
}

const Expression* Grammar::cast() {
  const std::uint32_t start = here();
  advance();
  const Span open = token_.span;
  advance();
  const Expression* operand = expression();
  expect(Keyword::kw_as, "and a type in CAST", "CAST(x AS f32)");
  const Name dtype = name("a type");
  if (!accept(Kind::right_paren)) fail_group(open);
  return make<Cast>(start, operand, dtype);
}

const Expression* Grammar::name_or_call() {
  if (next_.kind == Kind::left_paren) return call();
  const std::uint32_t start = here();
  const Name used = name("a name");
  if (at(Kind::left_bracket) || at(Kind::dot)) fail_after_name(used.text);
  return make<NameUse>(start, used.text);
}

const Expression* Grammar::call() {
  const std::uint32_t start = here();
  const Name function = name("a function");
  const Span open = token_.span;
  advance();
  std::span<const Argument> arguments;
  if (!accept(Kind::right_paren)) {
    bool first = true;
    arguments = list<Argument>([&] { return argument(std::exchange(first, false)); });
    close_paren(open);
  }
  std::span<const Name> partition;
  if (!accept(Keyword::kw_over)) return make<Call>(start, function, arguments, false, partition);

  const Span window = token_.span;
  if (!accept(Kind::left_paren)) fail_expected("'(' after OVER", "write OVER (PARTITION BY b)");
  if (accept(Keyword::kw_partition)) {
    expect(Keyword::kw_by, "after PARTITION", "PARTITION BY b");
    partition = list<Name>([&] { return name("an index"); });
  } else if (!at(Kind::right_paren)) {
    fail_keyword(Keyword::kw_partition, "BY or ')'", "OVER (PARTITION BY b)");
  }
  close_paren(window);
  return make<Call>(start, function, arguments, true, partition);
}

Argument Grammar::argument(bool first) {
  if (at_name() && next_.kind == Kind::arrow) {
    const Name label = name("an argument");
    advance();
    return {label, expression()};
  }
  // A comparison may be the first argument, as in sum(x = y); in later ones it is a mistake for =>.
  if (!first && at_name() && next_.kind == Kind::equal) fail_label();
  return {{}, expression()};
}

const SizeExpression* Grammar::size_expression() {
  const Expression* size = expression(Level::sum);
  if (!error_) check_size(*size);
  return size;
}

bool Grammar::check_size(const Expression& size) {
  const auto refuse = [&](Span span, std::string_view message) {
    fail(user_error(std::string(message),
                    "a size expression has whole numbers, sizes, + - * /, ceil(a / b) and parentheses",
                    span));
    return false;
  };
  if (size.if_a<NameUse>()) return true;
  if (const auto* call = size.if_a<Call>(); call != nullptr && call->function.text == "ceil") {
    const Expression* const of =
        call->arguments.size() == 1 && !call->windowed ? call->arguments.front().value : nullptr;
    const auto* const ratio = of == nullptr ? nullptr : of->if_a<Chain>();
    if (ratio == nullptr || ratio->rest.back().op != Operator::divide)
      return refuse(size.span, "expected a quotient in ceil");
    return check_size(*of);
  }
  if (const auto* literal = size.if_a<Literal>())
    return literal->is_whole || refuse(size.span, "a size is a whole number");
  const auto* chain = size.if_a<Chain>();
  if (chain == nullptr) return refuse(size.span, "expected a size");
  if (!check_size(*chain->first)) return false;
  for (const Term& term : chain->rest) {
    if (term.op == Operator::remainder) return refuse(term.op_span, "a size has no %");
    if (!check_size(*term.operand)) return false;
  }
  return true;
}

}  // namespace weft::language
