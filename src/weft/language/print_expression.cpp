// Names, numbers, values and expressions.
#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "weft/language/keyword.h"
#include "weft/language/printer.h"

namespace weft::language {

using namespace syntax;

namespace {

Level outer_level(const Expression& expression) {
  switch (expression.kind) {
    case ExpressionKind::negate: return Level::sign;
    case ExpressionKind::invert: return Level::logical_not;
    case ExpressionKind::chain: return level_of(expression.as<Chain>().rest.front().op);
    case ExpressionKind::comparison:
    case ExpressionKind::between: return Level::comparison;
    default: return Level::operand;
  }
}

// Whether an argument would be printed like stride = 2, which the parser rejects as a mistake.
bool looks_named(const Expression& argument) {
  if (const auto* chain = argument.if_a<Chain>()) return looks_named(*chain->first);
  const auto* comparison = argument.if_a<Comparison>();
  return comparison && comparison->op == Operator::equal && comparison->left->if_a<NameUse>();
}

std::string in_quotes(std::string_view text, char quote) {
  std::string result(1, quote);
  for (const char c : text) {
    if (c == quote) result += quote;
    result += c;
  }
  return result += quote;
}

}  // namespace

std::string print_name(std::string_view name) {
  const auto letter = [](char c) { return ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || c == '_'; };
  const auto plain = [&](char c) { return letter(c) || (c >= '0' && c <= '9'); };
  const bool bare = !name.empty() && letter(name[0]) && std::ranges::all_of(name, plain) &&
                    !is_reserved(find_keyword(name));
  return bare ? std::string(name) : in_quotes(name, '"');
}

void Printer::write(const Name& name) { out_ += print_name(name.text); }

void Printer::write(const Number& number) { write_number(number.value, number.whole, number.is_whole); }

void Printer::write_number(double value, std::int64_t whole, bool is_whole) {
  if (is_whole) {
    out_ += fmt::format("{}", whole);
    return;
  }
  const std::string digits = fmt::format("{}", value);
  out_ += digits;
  // 2.0 must not be read back as the integer 2.
  if (std::isfinite(value) && digits.find_first_of(".e") == digits.npos) out_ += ".0";
}

void Printer::write_string(std::string_view text) { out_ += in_quotes(text, '\''); }

void Printer::write(const Value& value) {
  switch (value.kind) {
    case ValueKind::number: write(value.number); break;
    case ValueKind::quantity:
      write(value.number);
      out_ += ' ';
      out_ += value.text;
      break;
    case ValueKind::text: write_string(value.text); break;
    case ValueKind::word: out_ += value.text; break;
    case ValueKind::boolean: out_ += value.truth ? "true" : "false"; break;
  }
}

void Printer::write(const Setting& setting) {
  write(setting.name);
  out_ += " = ";
  write(setting.value);
}

void Printer::write(const Expression& expression, Level loosest) {
  const Level level = outer_level(expression);
  const bool has_operator = level != Level::operand;
  const bool wrap = level < loosest || (has_operator && parentheses_ == Parentheses::all);
  if (wrap) out_ += '(';
  switch (expression.kind) {
    case ExpressionKind::literal: {
      const auto& literal = expression.as<Literal>();
      write_number(literal.value, literal.whole, literal.is_whole);
      break;
    }
    case ExpressionKind::boolean: out_ += expression.as<Boolean>().truth ? "true" : "false"; break;
    case ExpressionKind::name: out_ += print_name(expression.as<NameUse>().name); break;
    case ExpressionKind::negate:
      // Never print two signs in a row: -- begins a comment.
      out_ += '-';
      write(*expression.as<Negate>().operand, Level::operand);
      break;
    case ExpressionKind::invert:
      out_ += "NOT ";
      write(*expression.as<Invert>().operand, Level::logical_not);
      break;
    case ExpressionKind::chain: write(expression.as<Chain>()); break;
    case ExpressionKind::comparison: {
      const auto& comparison = expression.as<Comparison>();
      write(*comparison.left, Level::sum);
      out_ += fmt::format(" {} ", spelling(comparison.op));
      write(*comparison.right, Level::sum);
      break;
    }
    case ExpressionKind::between: {
      const auto& between = expression.as<Between>();
      write(*between.value, Level::sum);
      out_ += " BETWEEN ";
      write(*between.low, Level::sum);
      out_ += " AND ";
      write(*between.high, Level::sum);
      break;
    }
    case ExpressionKind::choice: write(expression.as<Choice>()); break;
    case ExpressionKind::cast: {
      const auto& cast = expression.as<Cast>();
      out_ += "CAST(";
      write(*cast.operand);
      out_ += " AS ";
      write(cast.dtype);
      out_ += ')';
      break;
    }
    case ExpressionKind::call: write(expression.as<Call>()); break;
  }
  if (wrap) out_ += ')';
}

void Printer::write(const Chain& chain) {
  const Level level = level_of(chain.rest.front().op);
  write(*chain.first, tighter(level));
  for (const Term& term : chain.rest) {
    out_ += fmt::format(" {} ", spelling(term.op));
    write(*term.operand, tighter(level));
  }
}

void Printer::write(const Choice& choice) {
  out_ += "CASE";
  for (const When& when : choice.whens) {
    out_ += " WHEN ";
    write(*when.condition);
    out_ += " THEN ";
    write(*when.result);
  }
  if (choice.otherwise) {
    out_ += " ELSE ";
    write(*choice.otherwise);
  }
  out_ += " END";
}

void Printer::write(const Call& call) {
  // CAST( is syntax; a function of that name is printed as "cast"(.
  const bool is_syntax = find_keyword(call.function.text) == Keyword::kw_cast;
  out_ += is_syntax ? in_quotes(call.function.text, '"') : print_name(call.function.text);
  out_ += '(';
  for (const Argument& argument : call.arguments) {
    const bool first = &argument == call.arguments.data();
    if (!first) out_ += ", ";
    write_argument(argument, first);
  }
  out_ += ')';
  if (!call.windowed) return;
  out_ += " OVER (";
  if (!call.partition.empty()) out_ += "PARTITION BY ";
  list(call.partition);
  out_ += ')';
}

void Printer::write_argument(const Argument& argument, bool first) {
  if (argument.label.given()) {
    write(argument.label);
    out_ += " => ";
  } else if (!first && looks_named(*argument.value)) {
    return write(*argument.value, Level::operand);
  }
  write(*argument.value);
}

}  // namespace weft::language
