#include "weft/collective/reader.h"

#include <array>
#include <charconv>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "weft/base/letters.h"
#include "weft/base/nearest.h"

namespace weft::collective {
namespace {

constexpr std::size_t kLongestText = std::size_t{1} << 30;  // spans have 32 bits

constexpr bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

bool is_plain_name(std::string_view name) {
  if (name.empty() || !is_letter(name[0])) return false;
  for (const char c : name)
    if (!is_letter(c) && !is_digit(c)) return false;
  return true;
}

struct Spelling {
  std::string_view text;
  Symbol symbol;
};

// Longer ones before those they start with.
constexpr auto kSpellings = std::to_array<Spelling>({
    {":=", Symbol::assign},     {"..", Symbol::range},         {"=>", Symbol::arrow},
    {"->", Symbol::thin_arrow}, {"<>", Symbol::not_equal},     {"!=", Symbol::not_equal},
    {"<=", Symbol::less_equal}, {">=", Symbol::greater_equal}, {"(", Symbol::left_paren},
    {")", Symbol::right_paren}, {"[", Symbol::left_bracket},   {"]", Symbol::right_bracket},
    {",", Symbol::comma},       {":", Symbol::colon},          {".", Symbol::dot},
    {"+", Symbol::plus},        {"-", Symbol::minus},          {"*", Symbol::star},
    {"/", Symbol::slash},       {"=", Symbol::equal},          {"<", Symbol::less},
    {">", Symbol::greater},
});

std::string_view remedy(char c) {
  switch (c) {
    case '%': return "a remainder is written a MOD b";
    case '^': return "write xor(a, b), or pow2(n) for a power of two";
    case '&': return "write AND, or bit_and(a, b)";
    case '|': return "write OR, or bit_or(a, b)";
    case '!': return "write NOT";
    case '"': return "write 'single quotes'";
    case '#': return "a comment starts with --";
    case ';': return "nothing stands between statements";
    default: return {};
  }
}

}  // namespace

std::string_view name(Symbol symbol) {
  switch (symbol) {
    case Symbol::end: return "the end of the text";
    case Symbol::word: return "a name";
    case Symbol::number: return "a number";
    case Symbol::quoted: return "a quoted text";
    case Symbol::left_paren: return "'('";
    case Symbol::right_paren: return "')'";
    case Symbol::left_bracket: return "'['";
    case Symbol::right_bracket: return "']'";
    case Symbol::comma: return "','";
    case Symbol::colon: return "':'";
    case Symbol::assign: return "':='";
    case Symbol::dot: return "'.'";
    case Symbol::range: return "'..'";
    case Symbol::arrow: return "'=>'";
    case Symbol::thin_arrow: return "'->'";
    case Symbol::plus: return "'+'";
    case Symbol::minus: return "'-'";
    case Symbol::star: return "'*'";
    case Symbol::slash: return "'/'";
    case Symbol::equal: return "'='";
    case Symbol::not_equal: return "'<>'";
    case Symbol::less: return "'<'";
    case Symbol::less_equal: return "'<='";
    case Symbol::greater: return "'>'";
    case Symbol::greater_equal: return "'>='";
  }
  return {};
}

Reader::Reader(std::string_view text) : text_(text) {
  if (text.size() >= kLongestText) {
    text_ = {};
    fail_at({}, fmt::format("text is too long: {} bytes", text.size()));
    return;
  }
  if (text.starts_with("\xEF\xBB\xBF")) place_ = 3;  // a byte order mark, which some editors leave
  token_ = scan();
}

std::string_view Reader::spelling(const Token& token) const {
  return text_.substr(token.span.offset, token.span.length);
}

Token Reader::after() {
  const std::size_t place = place_;
  const Token result = scan();
  if (!failed()) place_ = place;
  return result;
}

bool Reader::at_word(std::string_view word) const {
  return token_.symbol == Symbol::word && same_word(spelling(), word);
}

void Reader::advance() {
  last_end_ = token_.span.offset + token_.span.length;
  token_ = scan();
}

bool Reader::take(Symbol symbol) {
  if (!at(symbol)) return false;
  advance();
  return true;
}

bool Reader::take_word(std::string_view word) {
  if (!at_word(word)) return false;
  advance();
  return true;
}

void Reader::expect(Symbol symbol) {
  if (!take(symbol)) fail_expected(collective::name(symbol));
}

void Reader::expect_word(std::string_view word) {
  if (take_word(word)) return;
  const std::string_view candidates[] = {word};
  fail_expected(word, candidates);
}

std::string_view Reader::name(std::string_view what) {
  if (!at(Symbol::word)) {
    fail_expected(what);
    return {};
  }
  const std::string_view result = spelling();
  advance();
  return result;
}

std::string Reader::quoted(std::string_view what) {
  if (!at(Symbol::quoted)) {
    fail_expected(what, "write it 'in single quotes'");
    return {};
  }
  const std::string_view inside = spelling().substr(1, token_.span.length - 2);
  std::string result;
  for (std::size_t i = 0; i < inside.size(); ++i) {
    result += inside[i];
    if (inside[i] == '\'') ++i;  // written twice
  }
  advance();
  return result;
}

std::uint64_t Reader::digits(std::string_view what, std::uint64_t most) {
  if (!at(Symbol::number)) {
    fail_expected(what);
    return 0;
  }
  const std::string_view text = spelling();
  std::uint64_t value = 0;
  const bool fits = std::from_chars(text.data(), text.data() + text.size(), value).ec == std::errc{};
  if (!fits || value > most) {
    fail(fmt::format("number is too large: {}", text.substr(0, 40)), "numbers have 64 bits");
    return 0;
  }
  advance();
  return value;
}

std::int64_t Reader::number(std::string_view what) {
  return static_cast<std::int64_t>(digits(what, std::numeric_limits<std::int64_t>::max()));
}

std::int64_t Reader::wide_number(std::string_view what) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();
  const bool negative = take(Symbol::minus);
  const std::uint64_t value = digits(what, negative ? kMost + 1 : kMost);
  return static_cast<std::int64_t>(negative ? 0 - value : value);
}

std::int32_t Reader::small_number(std::string_view what) {
  const Token first = token_;
  const std::int64_t value = wide_number(what);
  if (value < std::numeric_limits<std::int32_t>::min() || value > std::numeric_limits<std::int32_t>::max()) {
    fail_at(since(first), fmt::format("number is too large: {}", value), "numbers have 32 bits here");
    return 0;
  }
  return static_cast<std::int32_t>(value);
}

Span Reader::since(const Token& from) const {
  const auto end = static_cast<std::uint32_t>(last_end_);
  return {from.span.offset, end > from.span.offset ? end - from.span.offset : from.span.length};
}

void Reader::fail(std::string message, std::string hint) {
  Span span = token_.span;
  if (span.length == 0) span.length = 1;  // the end of the text has a place all the same
  fail_at(span, std::move(message), std::move(hint));
}

void Reader::fail_at(Span span, std::string message, std::string hint) {
  if (!error_) error_ = user_error(std::move(message), std::move(hint), span);
  place_ = text_.size();
  token_ = {Symbol::end, {static_cast<std::uint32_t>(text_.size()), 0}};
}

void Reader::fail_expected(std::string_view what, std::string hint) {
  if (failed()) return;
  const std::string found =
      at_end() ? std::string(collective::name(Symbol::end)) : fmt::format("'{}'", spelling().substr(0, 40));
  fail(fmt::format("expected {}, found {}", what, found), std::move(hint));
}

void Reader::fail_expected(std::string_view what, std::span<const std::string_view> candidates) {
  if (failed()) return;
  fail_expected(what, at(Symbol::word) ? did_you_mean(spelling(), candidates) : "");
}

bool Reader::skip_blanks() {
  while (place_ < text_.size()) {
    if (is_blank(text_[place_])) {
      ++place_;
    } else if (text_.substr(place_, 2) == "--") {
      place_ = std::min(text_.find('\n', place_), text_.size());
    } else {
      return true;
    }
  }
  return false;
}

Token Reader::scan() {
  const bool more = !failed() && skip_blanks();
  const std::size_t start = place_;
  const auto token = [&](Symbol symbol) {
    return Token{symbol, {static_cast<std::uint32_t>(start), static_cast<std::uint32_t>(place_ - start)}};
  };
  if (!more) return token(Symbol::end);

  const char c = text_[start];
  if (is_letter(c) || is_digit(c)) {
    const auto belongs = [&](char letter) { return is_digit(letter) || (is_letter(c) && is_letter(letter)); };
    while (place_ < text_.size() && belongs(text_[place_])) ++place_;
    return token(is_letter(c) ? Symbol::word : Symbol::number);
  }
  if (c == '\'') return scan_quoted(start);
  for (const Spelling& spelling : kSpellings) {
    if (text_.substr(start, spelling.text.size()) != spelling.text) continue;
    place_ += spelling.text.size();
    return token(spelling.symbol);
  }
  const bool visible = c > ' ' && c < 0x7F;
  const Span span{static_cast<std::uint32_t>(start), 1};
  fail_at(span,
          visible ? fmt::format("unexpected character: {}", c)
                  : fmt::format("unexpected byte: 0x{:02x}", static_cast<unsigned char>(c)),
          std::string(remedy(c)));
  return token_;
}

Token Reader::scan_quoted(std::size_t start) {
  for (place_ = start + 1; place_ < text_.size(); ++place_) {
    if (text_[place_] != '\'') continue;
    ++place_;
    if (place_ < text_.size() && text_[place_] == '\'') continue;  // a quote inside, written twice
    return {Symbol::quoted, {static_cast<std::uint32_t>(start), static_cast<std::uint32_t>(place_ - start)}};
  }
  fail_at({static_cast<std::uint32_t>(start), 1}, "quoted text is not closed",
          "close it with '; a quote inside is written ''");
  return token_;
}

std::string quote(std::string_view text) {
  std::string result = "'";
  for (const char c : text) {
    result += c;
    if (c == '\'') result += c;
  }
  return result + "'";
}

std::string print_name(std::string_view name) {
  return is_plain_name(name) ? std::string(name) : quote(name);
}

}  // namespace weft::collective
