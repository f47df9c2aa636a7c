#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "weft/base/letters.h"
#include "weft/base/nearest.h"
#include "weft/collectives/algorithm/algorithm_parser.h"

namespace weft::collective {
namespace {

constexpr std::int32_t kAnyNumber = 64;

constexpr auto kBuiltins = std::to_array<BuiltinFunction>({
    {"min", Operator::minimum, 1, kAnyNumber},
    {"max", Operator::maximum, 1, kAnyNumber},
    {"abs", Operator::absolute, 1, 1},
    {"log2", Operator::log2, 1, 1},
    {"ceil_log2", Operator::ceil_log2, 1, 1},
    {"pow2", Operator::pow2, 1, 1},
    {"xor", Operator::exclusive_or, 2, 2},
    {"bit_and", Operator::bit_and, 2, 2},
    {"bit_or", Operator::bit_or, 2, 2},
    {"shift_left", Operator::shift_left, 2, 2},
    {"shift_right", Operator::shift_right, 2, 2},
    {"popcount", Operator::popcount, 1, 1},
    {"gcd", Operator::gcd, 2, 2},
    {"sum", Operator::sum, 1, 2},
    {"length", Operator::length, 1, 1},
    {"repeat", Operator::repeat, 2, 2},
});

constexpr std::string_view describe_type(ParameterType type) {
  return type == ParameterType::number ? "a number" : type == ParameterType::word ? "a word" : "a list";
}

}  // namespace

std::span<const BuiltinFunction> builtin_functions() { return kBuiltins; }

ExpressionId AlgorithmParser::number() {
  const ExpressionId result = expression();
  require(result, ParameterType::number);
  return result;
}

ExpressionId AlgorithmParser::sum_of_numbers() {
  const ExpressionId result = additive();
  require(result, ParameterType::number);
  return result;
}

ExpressionId AlgorithmParser::word() {
  if (reader_.at(TokenKind::word))
    if (Name* const name = find(reader_.spelling())) decide(*name, ParameterType::word);
  const ExpressionId result = expression();
  require(result, ParameterType::word);
  return result;
}

ExpressionId AlgorithmParser::list() {
  if (reader_.at(TokenKind::word))
    if (Name* const name = find(reader_.spelling())) decide(*name, ParameterType::list);
  const ExpressionId result = expression();
  require(result, ParameterType::list);
  return result;
}

ExpressionId AlgorithmParser::expression() {
  if (!deeper()) return kNoExpression;
  const ExpressionId result = disjunction();
  --level_;
  return result;
}

ExpressionId AlgorithmParser::disjunction() {
  ExpressionId left = conjunction();
  while (reader_.take_word("or")) left = binary(Operator::logical_or, left, conjunction());
  return left;
}

ExpressionId AlgorithmParser::conjunction() {
  ExpressionId left = negation();
  while (reader_.take_word("and")) left = binary(Operator::logical_and, left, negation());
  return left;
}

ExpressionId AlgorithmParser::negation() {
  const Token start = reader_.token();
  if (!reader_.take_word("not")) return comparison();
  if (!deeper()) return kNoExpression;
  const ExpressionId operand = negation();
  --level_;
  require(operand, ParameterType::number);
  return add({.op = Operator::logical_not, .first = operand, .span = reader_.since(start)},
             ParameterType::number, depth(operand));
}

ExpressionId AlgorithmParser::comparison() {
  const ExpressionId left = additive();
  Operator op = Operator::equal;
  switch (reader_.token().kind) {
    case TokenKind::equal: op = Operator::equal; break;
    case TokenKind::not_equal: op = Operator::not_equal; break;
    case TokenKind::less: op = Operator::less; break;
    case TokenKind::less_equal: op = Operator::less_equal; break;
    case TokenKind::greater: op = Operator::greater; break;
    case TokenKind::greater_equal: op = Operator::greater_equal; break;
    default: return left;
  }
  reader_.advance();
  if (type(left) == ParameterType::word && (op == Operator::equal || op == Operator::not_equal)) {
    if (reader_.at(TokenKind::word))
      if (Name* const name = find(reader_.spelling())) decide(*name, ParameterType::word);
    const ExpressionId right = additive();
    require(right, ParameterType::word);
    if (reader_.failed()) return kNoExpression;
    const Operator same = op == Operator::equal ? Operator::same_word : Operator::other_word;
    const Span whole{span(left).offset, span(right).offset + span(right).length - span(left).offset};
    return add({.op = same, .first = left, .second = right, .span = whole}, ParameterType::number,
               std::max(depth(left), depth(right)));
  }
  return binary(op, left, additive());
}

ExpressionId AlgorithmParser::additive() {
  ExpressionId left = multiplicative();
  for (;;) {
    if (reader_.at(TokenKind::plus)) {
      // promise() reads the sum of a WANT; `input` has no other meaning.
      const Token next = reader_.after();
      if (next.kind == TokenKind::word && same_word(reader_.spelling(next), "input")) return left;
      reader_.advance();
      left = binary(Operator::add, left, multiplicative());
    } else if (reader_.take(TokenKind::minus)) {
      left = binary(Operator::subtract, left, multiplicative());
    } else {
      return left;
    }
  }
}

ExpressionId AlgorithmParser::multiplicative() {
  ExpressionId left = unary();
  for (;;) {
    if (reader_.take(TokenKind::star)) {
      left = binary(Operator::multiply, left, unary());
    } else if (reader_.take(TokenKind::slash) || reader_.take_word("div")) {
      left = binary(Operator::divide, left, unary());
    } else if (reader_.take_word("mod")) {
      left = binary(Operator::modulo, left, unary());
    } else {
      return left;
    }
  }
}

ExpressionId AlgorithmParser::unary() {
  const Token start = reader_.token();
  if (!reader_.take(TokenKind::minus)) return primary();
  if (!deeper()) return kNoExpression;
  const ExpressionId operand = unary();
  --level_;
  require(operand, ParameterType::number);
  return add({.op = Operator::negate, .first = operand, .span = reader_.since(start)}, ParameterType::number,
             depth(operand));
}

ExpressionId AlgorithmParser::primary() {
  const Token start = reader_.token();
  switch (start.kind) {
    case TokenKind::number: {
      const std::int64_t value = reader_.number("a number");
      return add({.op = Operator::number, .value = value, .span = start.span}, ParameterType::number, 0);
    }
    case TokenKind::string: {
      const auto place = static_cast<std::int64_t>(syntax_.words.size());
      syntax_.words.push_back(reader_.string("a word"));
      return add({.op = Operator::word, .value = place, .span = start.span}, ParameterType::word, 0);
    }
    case TokenKind::left_paren: {
      reader_.advance();
      const ExpressionId inside = expression();
      reader_.expect(TokenKind::right_paren);
      return inside;
    }
    case TokenKind::left_bracket: return list_literal();
    case TokenKind::word: return reader_.at_word("if") ? choice() : name_use();
    default: reader_.fail_expected("an expression"); return kNoExpression;
  }
}

ExpressionId AlgorithmParser::choice() {
  const Token start = reader_.token();
  reader_.expect_word("IF");
  const ExpressionId condition = number();
  reader_.expect_word("THEN");
  const ExpressionId yes = expression();
  reader_.expect_word("ELSE");
  const ExpressionId no = expression();
  if (reader_.failed()) return kNoExpression;
  require(no, type(yes));
  return add(
      {.op = Operator::choose, .first = condition, .second = yes, .third = no, .span = reader_.since(start)},
      type(yes), std::max({depth(condition), depth(yes), depth(no)}));
}

ExpressionId AlgorithmParser::list_literal() {
  const Token start = reader_.token();
  reader_.expect(TokenKind::left_bracket);
  std::vector<ExpressionId> items;
  if (!reader_.at(TokenKind::right_bracket)) {
    do items.push_back(number());
    while (reader_.take(TokenKind::comma));
  }
  reader_.expect(TokenKind::right_bracket);
  return many(Operator::list, items, reader_.since(start), ParameterType::list);
}

ExpressionId AlgorithmParser::name_use() {
  const Token start = reader_.token();
  const std::string spelling = lower(reader_.name("a name"));
  if (reader_.at(TokenKind::left_paren)) return function_call(spelling, start);
  Name* const name = find(spelling);
  if (!name) return unknown_name(spelling, start.span, false);
  if (!reader_.at(TokenKind::left_bracket)) return name_reference(*name, start);

  decide(*name, ParameterType::list);
  const ExpressionId list = name_reference(*name, start);
  require(list, ParameterType::list);
  reader_.expect(TokenKind::left_bracket);
  const ExpressionId index = number();
  reader_.expect(TokenKind::right_bracket);
  return add({.op = Operator::item, .first = list, .second = index, .span = reader_.since(start)},
             ParameterType::number, depth(index));
}

ExpressionId AlgorithmParser::name_reference(Name& name, const Token& start) {
  Operator op = Operator::variable;
  ParameterType type = ParameterType::number;
  switch (name.kind) {
    case NameKind::undecided:
      // A name compared with a quoted word is a word.
      if ((reader_.at(TokenKind::equal) || reader_.at(TokenKind::not_equal)) &&
          reader_.after().kind == TokenKind::string)
        decide(name, ParameterType::word);
      else
        decide(name, ParameterType::number);
      return name_reference(name, start);
    case NameKind::number: break;
    case NameKind::argument: op = Operator::argument; break;
    case NameKind::word: op = Operator::word_parameter, type = ParameterType::word; break;
    case NameKind::list: op = Operator::list_parameter, type = ParameterType::list; break;
  }
  return add({.op = op, .name = intern(name.spelling), .value = name.place, .span = start.span}, type, 0);
}

ExpressionId AlgorithmParser::function_call(std::string_view spelling, const Token& start) {
  for (const BuiltinFunction& builtin : kBuiltins)
    if (builtin.name == spelling) return builtin_call(builtin, start);
  const auto head = std::ranges::find(function_heads_, spelling, &FunctionHead::name);
  if (head == function_heads_.end()) return unknown_name(spelling, start.span, true);
  if (in_defaults_) {
    reader_.fail_at(start.span,
                    fmt::format("a default cannot use the algorithm's own function: {}", spelling),
                    "functions may use every parameter, and those after this one have no value yet");
    return kNoExpression;
  }
  const std::vector<ExpressionId> given = operands();
  for (const ExpressionId id : given) require(id, ParameterType::number);
  if (!reader_.failed() && given.size() != static_cast<std::size_t>(head->parameters))
    reader_.fail_at(reader_.since(start), fmt::format("{} expects {} arguments, found {}", spelling,
                                                      head->parameters, given.size()));
  const ExpressionId result = many(Operator::call, given, reader_.since(start));
  if (result != kNoExpression) syntax_.expressions[result].value = head - function_heads_.begin();
  return result;
}

ExpressionId AlgorithmParser::builtin_call(const BuiltinFunction& function, const Token& start) {
  const bool takes_list = function.op == Operator::sum || function.op == Operator::length;
  if (takes_list) {
    const Token inside = reader_.after();
    if (inside.kind == TokenKind::word)
      if (Name* const name = find(reader_.spelling(inside))) decide(*name, ParameterType::list);
  }
  const std::vector<ExpressionId> given = operands();
  const auto count = static_cast<std::int32_t>(given.size());
  if (!reader_.failed() && (count < function.least || count > function.most))
    reader_.fail_at(reader_.since(start),
                    fmt::format("{} expects {} operand{}, found {}", function.name,
                                function.least == function.most ? fmt::format("{}", function.least)
                                                                : fmt::format("{} or more", function.least),
                                function.most == 1 ? "" : "s", count));
  for (std::int32_t i = 0; i < count; ++i)
    require(given[i], takes_list && i == 0 ? ParameterType::list : ParameterType::number);
  if (reader_.failed()) return kNoExpression;
  if (function.op == Operator::minimum || function.op == Operator::maximum)
    return many(function.op, given, reader_.since(start));
  const ExpressionId second = count > 1 ? given[1] : kNoExpression;
  return add({.op = function.op, .first = given[0], .second = second, .span = reader_.since(start)},
             function.op == Operator::repeat ? ParameterType::list : ParameterType::number,
             std::max(depth(given[0]), depth(second)));
}

std::vector<ExpressionId> AlgorithmParser::operands() {
  std::vector<ExpressionId> result;
  reader_.expect(TokenKind::left_paren);
  if (!reader_.at(TokenKind::right_paren)) {
    do result.push_back(expression());
    while (reader_.take(TokenKind::comma));
  }
  reader_.expect(TokenKind::right_paren);
  return result;
}

ExpressionId AlgorithmParser::unknown_name(std::string_view spelling, Span span, bool is_function) {
  std::vector<std::string_view> known;
  if (is_function) {
    for (const BuiltinFunction& builtin : kBuiltins) known.push_back(builtin.name);
    for (const FunctionHead& head : function_heads_) known.push_back(head.name);
  } else {
    for (const Name& name : names_) known.push_back(name.spelling);
  }
  reader_.fail_at(span, fmt::format("unknown {}: {}", is_function ? "function" : "name", spelling),
                  did_you_mean(spelling, known));
  return kNoExpression;
}

ExpressionId AlgorithmParser::add(Expression expression, ParameterType type, std::int32_t depth) {
  if (reader_.failed()) return kNoExpression;
  if (depth + 1 > kDeepestExpression) {
    reader_.fail_at(expression.span, fmt::format("expression is nested too deeply: {}", depth + 1),
                    "name a part of it with LET");
    return kNoExpression;
  }
  syntax_.expressions.push_back(expression);
  types_.push_back(type);
  depths_.push_back(static_cast<std::int16_t>(depth + 1));
  return static_cast<ExpressionId>(syntax_.expressions.size() - 1);
}

ExpressionId AlgorithmParser::binary(Operator op, ExpressionId first, ExpressionId second) {
  require(first, ParameterType::number);
  require(second, ParameterType::number);
  if (reader_.failed()) return kNoExpression;
  const Span whole{span(first).offset, span(second).offset + span(second).length - span(first).offset};
  return add({.op = op, .first = first, .second = second, .span = whole}, ParameterType::number,
             std::max(depth(first), depth(second)));
}

ExpressionId AlgorithmParser::many(Operator op, const std::vector<ExpressionId>& operands, Span span,
                                   ParameterType type) {
  if (reader_.failed()) return kNoExpression;
  std::int32_t deepest = 0;
  for (const ExpressionId id : operands) deepest = std::max(deepest, depth(id));
  const auto first = static_cast<std::int32_t>(syntax_.operands.size());
  syntax_.operands.insert(syntax_.operands.end(), operands.begin(), operands.end());
  return add(
      {.op = op, .first = first, .operand_count = static_cast<std::int32_t>(operands.size()), .span = span},
      type, deepest);
}

void AlgorithmParser::require(ExpressionId id, ParameterType wanted) {
  if (reader_.failed() || type(id) == wanted) return;
  reader_.fail_at(span(id),
                  fmt::format("expected {}, found {}", describe_type(wanted), describe_type(type(id))));
}

ParameterType AlgorithmParser::type(ExpressionId id) const {
  return id == kNoExpression ? ParameterType::number : types_[id];
}

std::int32_t AlgorithmParser::depth(ExpressionId id) const { return id == kNoExpression ? 0 : depths_[id]; }

Span AlgorithmParser::span(ExpressionId id) const { return syntax_.expressions[id].span; }

bool AlgorithmParser::deeper() {
  if (++level_ <= kDeepestExpression) return true;
  reader_.fail(fmt::format("expression is nested too deeply: {}", level_), "name a part of it with LET");
  return false;
}

}  // namespace weft::collective
