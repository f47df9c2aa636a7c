// settings  = "(" name "=" value {"," name "=" value} ")"
// value     = number [ unit ] | string | name | true | false
// number    = [ "-" | "+" ] ( digits | inf )
// unit      = name [ "/" name ], known to find_unit()
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "weft/base/nearest.h"
#include "weft/language/grammar.h"

namespace weft::language {

using namespace syntax;

namespace {

std::string nearest_unit(std::string_view unit) {
  // 400 Gbps is the usual mistake, and the one whose suggestion must keep the letter case.
  if (unit.ends_with("ps")) {
    const std::string rate = fmt::format("{}/s", unit.substr(0, unit.size() - 2));
    if (find_unit(rate)) return fmt::format("did you mean '{}'?", rate);
  }
  static constexpr auto kUnits = std::to_array<std::string_view>(
      {"B",       "kB",      "MB",    "GB",    "TB",    "KiB",    "MiB",     "GiB",
       "TiB",     "B/s",     "kB/s",  "MB/s",  "GB/s",  "TB/s",   "Gb/s",    "GiB/s",
       "FLOP",    "MFLOP",   "GFLOP", "TFLOP", "PFLOP", "FLOP/s", "MFLOP/s", "GFLOP/s",
       "TFLOP/s", "PFLOP/s", "s",     "ms",    "us",    "ns",     "min",     "h"});
  const std::string hint = did_you_mean(unit, kUnits);
  return hint.empty() ? "units are B, B/s, b/s, FLOP and FLOP/s with k M G T P or Ki Mi Gi Ti Pi, "
                        "and s ms us ns min h"
                      : hint;
}

}  // namespace

Name Grammar::name(std::string_view what) {
  if (!at_name()) {
    fail_name(what);
    return {};
  }
  const Token token = token_;
  advance();
  return {token.kind == Kind::quoted ? unquoted(token) : lexeme(token.span), token.span};
}

Text Grammar::text(std::string_view what) {
  if (!at(Kind::string)) {
    const bool slip = at(Kind::quoted) || at_name();
    fail_expected(what, slip ? "a string is written 'in single quotes'" : "");
    return {};
  }
  const Token token = token_;
  advance();
  return {unquoted(token), token.span};
}

std::string_view Grammar::unquoted(const Token& token) {
  const std::string_view whole = lexeme(token.span);
  const std::string_view inner = whole.substr(1, whole.size() - 2);
  if (!token.escaped) return inner;
  return arena_.copy(std::string_view(weft::unquoted(kLexicon, whole)));
}

Number Grammar::take_number() {
  const Token token = token_;
  advance();
  std::string_view digits = lexeme(token.span);
  std::string ungrouped;
  if (token.escaped) {
    for (const char c : digits)
      if (c != '_') ungrouped += c;
    digits = ungrouped;
  }
  Number result;
  result.span = token.span;
  result.is_whole = token.whole;
  const char* const end = digits.data() + digits.size();
  if (token.whole) {
    const auto status = std::from_chars(digits.data(), end, result.whole).ec;
    if (status != std::errc())
      fail(user_error("number is too large",
                      "a whole number is at most 9223372036854775807; write a larger one as 1e20",
                      token.span));
    result.value = static_cast<double>(result.whole);
  } else {
    const auto status = std::from_chars(digits.data(), end, result.value).ec;
    if (status != std::errc())
      fail(user_error("number is out of range", "numbers range from 1e-307 to 1e308", token.span));
  }
  return result;
}

Number Grammar::number(std::string_view what) {
  const std::uint32_t start = here();
  const bool negative = accept(Kind::minus);
  if (!negative) accept(Kind::plus);
  Number result;
  if (at(Kind::number)) {
    result = take_number();
  } else if (accept(Keyword::kw_inf)) {
    result.value = std::numeric_limits<double>::infinity();
  } else {
    fail_expected(what);
  }
  if (negative) {
    result.whole = -result.whole;
    result.value = result.is_whole ? static_cast<double>(result.whole) : -result.value;
  }
  result.span = since(start);
  return result;
}

Number Grammar::whole_number(std::string_view what, std::int64_t least) {
  if (!at(Kind::number) || !token_.whole) {
    const bool other_number = at(Kind::number) || at(Kind::minus);
    fail_expected(what, other_number ? fmt::format("write a whole number, {} or more", least) : "");
    return {};
  }
  const Number result = take_number();
  if (result.whole < least)
    fail(user_error(fmt::format("expected {}, {} or more, found {}", what, least, result.whole),
                    fmt::format("write {} or more", least), result.span));
  return result;
}

Value Grammar::value() {
  const std::uint32_t start = here();
  Value result;
  if (at(Kind::string)) {
    result.kind = ValueKind::text;
    result.text = text("a string").text;
  } else if (at(Keyword::kw_true) || at(Keyword::kw_false)) {
    result.kind = ValueKind::boolean;
    result.truth = at(Keyword::kw_true);
    advance();
  } else if (at(Kind::quoted)) {
    fail_expected("a value", "a string is written 'in single quotes'");
  } else if (at_name()) {
    result.kind = ValueKind::word;
    result.text = name("a value").text;
  } else {
    result.number = number("a value");
    result.quantity = {result.number.value, Dimension::count};
    if (at(Kind::word) && !is_reserved(token_.keyword)) take_unit(result);
  }
  result.span = since(start);
  return result;
}

Value Grammar::quantity(std::string_view what) {
  const std::uint32_t start = here();
  Value result;
  result.number = number(what);
  if (at_name())
    take_unit(result);
  else
    fail_expected("a unit", fmt::format("write {}", what));
  result.span = since(start);
  return result;
}

// REQUIRES: at(Kind::word), after a number. Joins GB / s.
void Grammar::take_unit(Value& value) {
  const std::uint32_t start = here();
  std::string_view unit = lexeme(token_.span);
  advance();
  if (at(Kind::slash)) {
    advance();
    const Name per = name("s after '/'");
    const std::string_view written = text_.substr(start, last_end_ - start);
    const bool joined = written.size() == unit.size() + 1 + per.text.size();
    unit = joined ? written : arena_.copy(std::string_view(fmt::format("{}/{}", unit, per.text)));
  }
  const std::optional<Quantity> scale = find_unit(unit);
  if (!scale)
    return fail(
        user_error(fmt::format("unknown unit: {}", unit.substr(0, 40)), nearest_unit(unit), since(start)));
  value.kind = ValueKind::quantity;
  value.quantity = {value.number.value * scale->value, scale->dimension};
  value.text = unit;
}

Setting Grammar::setting() {
  const Name key = name("a setting");
  if (!accept(Kind::equal))
    fail_expected("= after the setting's name", at(Kind::arrow) ? "settings are written name = value" : "");
  return {key, value()};
}

std::span<const Setting> Grammar::settings() {
  return parens<Setting>("'(' and settings", [&] { return setting(); });
}

std::span<const Setting> Grammar::with_settings() {
  if (!accept(Keyword::kw_with)) return {};
  return settings();
}

}  // namespace weft::language
