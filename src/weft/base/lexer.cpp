#include "weft/base/lexer.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "weft/base/utf8.h"

namespace weft {

Lexer::Lexer(const Lexicon& lexicon, std::string_view text) : lexicon_(&lexicon), scanner_(text) {
  if (text.starts_with("\xEF\xBB\xBF")) scanner_.step(3);  // a byte order mark, written by some editors
}

Token Lexer::next() {
  // Fast path: most tokens follow the previous one directly or after one blank.
  const std::size_t before = scanner_.place();
  scanner_.take(' ');
  if (is(Lexicon::kGap) && !skip_gap()) return token(TokenKind::bad, before);

  const std::size_t start = scanner_.place();
  if (scanner_.at_end()) return token(TokenKind::end, start);
  const auto c = static_cast<unsigned char>(scanner_.here());
  const std::uint8_t what = lexicon_->classes[c];
  if ((what & Lexicon::kFirst) != 0) {
    const std::array<std::uint8_t, 256>& classes = lexicon_->classes;
    scanner_.skip_while(
        [&](char letter) { return (classes[static_cast<unsigned char>(letter)] & Lexicon::kWord) != 0; });
    return token(TokenKind::word, start);
  }
  if ((what & Lexicon::kDigit) != 0) return number(start);
  if ((what & Lexicon::kQuote) != 0) return quotation(start);
  if (c == '.' && lexicon_->numbers == Numbers::grouped && is_digit(scanner_.ahead(1)))
    return bare_fraction(start);
  if ((what & Lexicon::kLongSign) != 0)
    for (const Sign& sign : lexicon_->signs)
      if (sign.spelling.size() > 1 && scanner_.at(sign.spelling)) {
        scanner_.step(sign.spelling.size());
        return token(sign.kind, start);
      }
  if ((what & Lexicon::kSingle) == 0) return strange(start);
  scanner_.step();
  return token(lexicon_->singles[c], start);
}

bool Lexer::skip_gap() {
  for (;;) {
    scanner_.skip_while(is_blank);
    if (!is(Lexicon::kGap)) return true;
    if (!lexicon_->line_comment.empty() && scanner_.at(lexicon_->line_comment)) {
      if (!skip_line_comment()) return false;
    } else if (lexicon_->block_comments && scanner_.at("/*")) {
      if (!skip_block_comment()) return false;
    } else if (lexicon_->joined_lines && (scanner_.at("\\\n") || scanner_.at("\\\r\n"))) {
      scanner_.skip_line();
      scanner_.step();
    } else {
      return true;
    }
  }
}

bool Lexer::skip_line_comment() {
  if (!lexicon_->checks_utf8) {
    scanner_.skip_line();
    return true;
  }
  while (!scanner_.at_end() && scanner_.here() != '\n')
    if (!step()) return false;
  return true;
}

bool Lexer::skip_block_comment() {
  const std::size_t start = scanner_.place();
  std::uint32_t depth = 0;
  while (!scanner_.at_end()) {
    if (scanner_.at("/*")) {
      ++depth;
      scanner_.step(2);
    } else if (scanner_.at("*/")) {
      scanner_.step(2);
      if (--depth == 0) return true;
    } else if (!step()) {
      return false;
    }
  }
  unfinished_ = true;
  fail({static_cast<std::uint32_t>(start), 2}, "comment is not closed",
       depth == 1 ? "close it with */" : fmt::format("comments nest: {} */ are missing", depth));
  return false;
}

Token Lexer::number(std::size_t start) {
  const bool grouped = lexicon_->numbers == Numbers::grouped;
  bool whole = true, has_groups = false;
  // A digit separator must be between two digits.
  const auto digits = [&] {
    for (; !scanner_.at_end(); scanner_.step()) {
      if (is_digit(scanner_.here())) continue;
      if (!grouped || scanner_.here() != '_') return true;
      has_groups = true;
      if (!is_digit(scanner_.ahead(1))) return false;
    }
    return true;
  };
  const auto malformed = [&](std::string hint) {
    scanner_.skip_while([](char c) { return is_in_word(c) || c == '.'; });
    return refuse(start, fmt::format("malformed number: {}", shown(start)), std::move(hint));
  };
  constexpr auto kGroups = "_ must be between digits: 1_000_000";
  if (!digits()) return malformed(kGroups);
  if (lexicon_->numbers != Numbers::whole) {
    if (scanner_.at('.') && (grouped || is_digit(scanner_.ahead(1)))) {
      scanner_.step();
      whole = false;
      if (!is_digit(scanner_.here())) return malformed("a digit follows the point: 1.0");
      if (!digits()) return malformed(kGroups);
    }
    if (to_lower(scanner_.here()) == 'e') {
      // Without digits it is not an exponent: in 1EB/s the E belongs to the unit.
      const std::size_t power = scanner_.ahead(1) == '+' || scanner_.ahead(1) == '-' ? 2 : 1;
      if (is_digit(scanner_.ahead(power))) {
        scanner_.step(power);
        whole = false;
        if (!digits()) return malformed(kGroups);
      }
    }
    if (grouped && scanner_.at('.')) return malformed("a number has at most one decimal point");
  }
  Token result = token(TokenKind::number, start);
  result.whole = whole;
  result.escaped = has_groups;
  return result;
}

Token Lexer::bare_fraction(std::size_t start) {
  scanner_.step();
  scanner_.skip_while(is_in_word);
  return refuse(start, "a number starts with a digit", fmt::format("write 0{}", shown(start)));
}

Token Lexer::quotation(std::size_t start) {
  const char mark = scanner_.here();
  const Quote& quote = *std::ranges::find(lexicon_->quotes, mark, &Quote::mark);
  bool escaped = false;
  scanner_.step();
  while (!scanner_.at_end() && !(quote.in_one_line && scanner_.at('\n'))) {
    if (quote.escape == Escape::backslash && scanner_.at('\\') && scanner_.left() > 1) {
      escaped = true;
      scanner_.step(2);
    } else if (!scanner_.at(mark)) {
      if (!step()) return token(TokenKind::bad, start);
    } else if (quote.escape == Escape::doubled && scanner_.ahead(1) == mark) {
      escaped = true;
      scanner_.step(2);
    } else {
      scanner_.step();
      if (!quote.empty.empty() && scanner_.place() - start == 2)
        return refuse(start, std::string(quote.empty));
      Token result = token(quote.kind, start);
      result.escaped = escaped;
      return result;
    }
  }
  unfinished_ = true;
  fail({static_cast<std::uint32_t>(start), 1}, std::string(quote.not_closed), std::string(quote.remedy));
  return token(TokenKind::bad, start);
}

Token Lexer::strange(std::size_t start) {
  if (!step()) return token(TokenKind::bad, start);
  const Token result = token(TokenKind::bad, start);
  error_ = lexicon_->stranger(scanner_.text_since(start), result.span);
  return result;
}

bool Lexer::step() {
  const char c = scanner_.here();
  const bool plain = c != '\0' && static_cast<unsigned char>(c) < 0x80;
  const std::size_t length = plain || !lexicon_->checks_utf8 ? 1
                             : c == '\0'                     ? 0
                                                             : utf8_length(scanner_.rest());
  if (length != 0) [[likely]] {
    scanner_.step(length);
    return true;
  }
  const auto place = static_cast<std::uint32_t>(scanner_.place());
  if (c == '\0')
    fail({place, 1}, fmt::format("unexpected NUL byte at offset {}", place), "is this a text file?");
  else
    fail({place, 1},
         fmt::format("invalid UTF-8: byte 0x{:02x} at offset {}", static_cast<unsigned char>(c), place),
         "save the file as UTF-8");
  scanner_.step();
  return false;
}

std::string_view Lexer::rest_of_line() {
  const std::size_t from = scanner_.place();
  scanner_.skip_line();
  std::string_view rest = scanner_.text_since(from);
  while (!rest.empty() && is_blank(rest.front())) rest.remove_prefix(1);
  while (!rest.empty() && is_blank(rest.back())) rest.remove_suffix(1);
  return rest;
}

Token Lexer::token(TokenKind kind, std::size_t start) const {
  Token result;
  result.kind = kind;
  result.span = scanner_.span_since(start);
  return result;
}

Token Lexer::refuse(std::size_t start, std::string message, std::string hint) {
  const Token result = token(TokenKind::bad, start);
  fail(result.span, std::move(message), std::move(hint));
  return result;
}

void Lexer::fail(Span span, std::string message, std::string hint) {
  error_ = user_error(std::move(message), std::move(hint), span);
}

std::string unquoted(const Lexicon& lexicon, std::string_view token) {
  const Escape escape = std::ranges::find(lexicon.quotes, token[0], &Quote::mark)->escape;
  const std::string_view inside = token.substr(1, token.size() - 2);
  std::string result;
  for (std::size_t i = 0; i < inside.size(); ++i) {
    const bool slash = escape == Escape::backslash && inside[i] == '\\' && i + 1 < inside.size();
    if (slash) ++i;
    result += slash && inside[i] == 'n' ? '\n' : inside[i];
    if (escape == Escape::doubled && inside[i] == token[0]) ++i;  // skip the doubled mark
  }
  return result;
}

}  // namespace weft
