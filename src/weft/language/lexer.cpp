#include "weft/language/lexer.h"

#include <array>
#include <utility>

#include <fmt/format.h>

#include "weft/language/utf8.h"

namespace weft::language {
namespace {

constexpr bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_wide(char c) { return static_cast<unsigned char>(c) >= 0x80; }
constexpr bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

template <class Predicate>
constexpr std::array<bool, 256> table_of(Predicate predicate) {
  std::array<bool, 256> table{};
  for (std::size_t c = 0; c < table.size(); ++c) table[c] = predicate(static_cast<char>(c));
  return table;
}

constexpr auto kInWord = table_of([](char c) { return is_letter(c) || is_digit(c); });
// What blanks, comments and line continuations start with.
constexpr auto kMayBeBlank =
    table_of([](char c) { return is_blank(c) || c == '-' || c == '/' || c == '\\'; });

bool in(const std::array<bool, 256>& table, char c) { return table[static_cast<unsigned char>(c)]; }

// What the writer of a character that WeftQL has no use for probably wants.
std::string_view remedy(std::string_view character) {
  static constexpr auto kRemedies = std::to_array<std::pair<std::string_view, std::string_view>>({
      {"^", "a power is written pow(x, 2)"},
      {"!", "negation is written NOT"},
      {"&", "write AND"},
      {"|", "write OR"},
      {"#", "a comment starts with --"},
      {"`", "a name with unusual letters is written \"in double quotes\""},
      {"\\", "a backslash continues a line and must be the last thing on it"},
      {"{", "write ( and )"},
      {"}", "write ( and )"},
      {"\u2018", "a string is written 'in plain quotes'"},
      {"\u2019", "a string is written 'in plain quotes'"},
      {"\u201C", "a string is written 'in plain quotes'"},
      {"\u201D", "a string is written 'in plain quotes'"},
      {"\u2212", "a minus sign is written -"},
      {"\u2013", "a minus sign is written -"},
      {"\u00D7", "a product is written *"},
      {"\u00B7", "a product is written *"},
      {"\u2264", "write <="},
      {"\u2265", "write >="},
      {"\u2260", "write <>"},
      {"\u221E", "infinity is written inf"},
      {"\u00A0", "it is a no-break space: replace it by a plain one"},
  });
  for (const auto& [found, advice] : kRemedies)
    if (found == character) return advice;
  if (is_wide(character[0])) return "a name with letters beyond ASCII is written \"in double quotes\"";
  return {};
}

}  // namespace

Lexer::Lexer(std::string_view text) : begin_(text.data()), at_(text.data()), end_(text.data() + text.size()) {
  if (text.starts_with("\xEF\xBB\xBF")) at_ += 3;  // a byte order mark, which some editors leave
}

inline Token Lexer::word(const char* start) {
  const char* at = start + 1;
  while (at != end_ && in(kInWord, *at)) ++at;
  at_ = at;
  Token result = token(TokenKind::word, start);
  result.keyword = find_keyword({start, at}, static_cast<std::size_t>(end_ - start));
  return result;
}

Token Lexer::next() {
  // Most tokens stand one blank or none behind the last: look no further then.
  const char* const before = at_;
  if (at_ != end_ && *at_ == ' ') ++at_;
  if (at_ != end_ && in(kMayBeBlank, *at_) && !skip_blanks()) return token(TokenKind::bad, before);

  const char* const start = at_;
  if (at_ == end_) return token(TokenKind::end, start);
  const char c = *start;
  if (is_letter(c)) return word(start);
  if (is_digit(c)) return number(start);

  ++at_;
  using Kind = TokenKind;
  const auto single = [&](Kind kind) { return token(kind, start); };
  const auto pair = [&](Kind kind) {
    ++at_;
    return token(kind, start);
  };
  const char follower = at_ != end_ ? *at_ : '\0';
  switch (c) {
    case '(': return single(Kind::left_paren);
    case ')': return single(Kind::right_paren);
    case '[': return single(Kind::left_bracket);
    case ']': return single(Kind::right_bracket);
    case ',': return single(Kind::comma);
    case ';': return single(Kind::semicolon);
    case '+': return single(Kind::plus);
    case '-': return single(Kind::minus);
    case '*': return single(Kind::star);
    case '/': return single(Kind::slash);
    case '%': return single(Kind::percent);
    case '=':
      if (follower == '>') return pair(Kind::arrow);
      return follower == '=' ? pair(Kind::double_equal) : single(Kind::equal);
    case '<':
      if (follower == '>') return pair(Kind::not_equal);
      return follower == '=' ? pair(Kind::less_equal) : single(Kind::less);
    case '>': return follower == '=' ? pair(Kind::greater_equal) : single(Kind::greater);
    case '!': return follower == '=' ? pair(Kind::not_equal) : strange(start);
    case '.': return is_digit(follower) ? bare_fraction(start) : single(Kind::dot);
    case '\'':
    case '"': return quotation(start, c);
    default: return strange(start);
  }
}

bool Lexer::skip_blanks() {
  for (;;) {
    const char* at = at_;
    while (at != end_ && is_blank(*at)) ++at;
    at_ = at;
    const std::size_t left = static_cast<std::size_t>(end_ - at);
    if (left < 2 || !in(kMayBeBlank, *at)) return true;
    if (*at == '-') {
      if (at[1] != '-') return true;
      if (!skip_line_comment()) return false;
    } else if (*at == '/') {
      if (at[1] != '*') return true;
      if (!skip_block_comment()) return false;
    } else {
      const std::size_t carriage = at[1] == '\r' ? 1 : 0;
      if (left < 2 + carriage || at[1 + carriage] != '\n') return true;
      at_ += 2 + carriage;
    }
  }
}

bool Lexer::skip_line_comment() {
  while (at_ != end_ && *at_ != '\n')
    if (!step()) return false;
  return true;
}

bool Lexer::skip_block_comment() {
  const char* const start = at_;
  std::uint32_t depth = 0;
  while (at_ != end_) {
    const char c = *at_;
    const char follower = end_ - at_ > 1 ? at_[1] : '\0';
    if (c == '/' && follower == '*') {
      ++depth;
      at_ += 2;
    } else if (c == '*' && follower == '/') {
      at_ += 2;
      if (--depth == 0) return true;
    } else if (!step()) {
      return false;
    }
  }
  unfinished_ = true;
  fail({offset(start), 2}, "comment is not closed",
       depth == 1 ? "close it with */" : fmt::format("comments nest: {} */ are missing", depth));
  return false;
}

Token Lexer::number(const char* start) {
  bool whole = true, grouped = false;
  // A group mark stands between two digits.
  const auto digits = [&] {
    for (; at_ != end_; ++at_) {
      if (is_digit(*at_)) continue;
      if (*at_ != '_') return true;
      grouped = true;
      if (end_ - at_ < 2 || !is_digit(at_[1])) return false;
    }
    return true;
  };
  const auto malformed = [&](std::string hint) {
    while (at_ != end_ && (in(kInWord, *at_) || *at_ == '.')) ++at_;
    return refuse(start, fmt::format("malformed number: {}", shown(start)), std::move(hint));
  };
  constexpr auto kGroups = "_ stands between digits: 1_000_000";
  if (!digits()) return malformed(kGroups);
  if (at_ != end_ && *at_ == '.') {
    ++at_;
    whole = false;
    if (at_ == end_ || !is_digit(*at_)) return malformed("a digit follows the point: 1.0");
    if (!digits()) return malformed(kGroups);
  }
  if (at_ != end_ && (*at_ | 0x20) == 'e') {
    // Without digits it is no exponent: in 1EB/s the E belongs to the unit.
    const char* power = at_ + 1;
    if (power != end_ && (*power == '+' || *power == '-')) ++power;
    if (power != end_ && is_digit(*power)) {
      at_ = power;
      whole = false;
      if (!digits()) return malformed(kGroups);
    }
  }
  if (at_ != end_ && *at_ == '.') return malformed("a number has one point");
  Token result = token(TokenKind::number, start);
  result.whole = whole;
  result.escaped = grouped;
  return result;
}

Token Lexer::bare_fraction(const char* start) {
  while (at_ != end_ && in(kInWord, *at_)) ++at_;
  return refuse(start, "a number starts with a digit", fmt::format("write 0{}", shown(start)));
}

Token Lexer::quotation(const char* start, char quote) {
  const bool is_name = quote == '"';
  bool escaped = false;
  while (at_ != end_) {
    if (*at_ != quote) {
      if (!step()) return token(TokenKind::bad, start);
      continue;
    }
    ++at_;
    if (at_ != end_ && *at_ == quote) {
      escaped = true;
      ++at_;
      continue;
    }
    if (is_name && at_ - start == 2) return refuse(start, "a name cannot be empty");
    Token result = token(is_name ? TokenKind::quoted : TokenKind::string, start);
    result.escaped = escaped;
    return result;
  }
  unfinished_ = true;
  fail({offset(start), 1}, is_name ? "quoted name is not closed" : "string is not closed",
       is_name ? "close it with \"; a quote inside is written \"\""
               : "close it with '; a quote inside is written ''");
  return token(TokenKind::bad, start);
}

Token Lexer::strange(const char* start) {
  at_ = start;
  if (!step()) return token(TokenKind::bad, start);
  const std::string_view character(start, at_);
  if (character[0] > 0 && character[0] < ' ')
    return refuse(start, fmt::format("unexpected control character: 0x{:02x}", character[0]));
  const std::string_view advice = remedy(character);
  return refuse(start, fmt::format("unexpected character: {}", character),
                advice.empty() ? "take it away; a name with such a letter stands in double quotes"
                               : std::string(advice));
}

bool Lexer::step() {
  if (!is_wide(*at_) && *at_ != '\0') {
    ++at_;
    return true;
  }
  const std::size_t length = *at_ == '\0' ? 0 : utf8_length({at_, end_});
  if (length != 0) {
    at_ += length;
    return true;
  }
  if (*at_ == '\0') {
    fail({offset(at_), 1}, fmt::format("unexpected NUL byte at offset {}", offset(at_)),
         "is this a text file?");
  } else {
    fail({offset(at_), 1},
         fmt::format("invalid UTF-8: byte 0x{:02x} at offset {}", static_cast<unsigned char>(*at_),
                     offset(at_)),
         "save the file as UTF-8");
  }
  ++at_;
  return false;
}

std::string_view Lexer::shown(const char* start) const { return std::string_view(start, at_).substr(0, 40); }

std::uint32_t Lexer::offset(const char* place) const { return static_cast<std::uint32_t>(place - begin_); }

Token Lexer::token(TokenKind kind, const char* start) const {
  Token result;
  result.kind = kind;
  result.span = {offset(start), static_cast<std::uint32_t>(at_ - start)};
  return result;
}

Token Lexer::refuse(const char* start, std::string message, std::string hint) {
  const Token result = token(TokenKind::bad, start);
  fail(result.span, std::move(message), std::move(hint));
  return result;
}

void Lexer::fail(Span span, std::string message, std::string hint) {
  error_ = user_error(std::move(message), std::move(hint), span);
}

}  // namespace weft::language
