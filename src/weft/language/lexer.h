// weft/language/lexer.h -- splits a script into tokens.
//
//   Lexer lexer("SELECT x -- all of it");
//   lexer.next();   // word, keyword SELECT, [0, 6)
//   lexer.next();   // word, keyword none, [7, 8)
//   lexer.next();   // end, from now on
//
// Blanks, comments (-- to the end of the line, /* nested /* like */ this */) and a backslash at the
// end of a line only separate tokens. Text outside strings, quoted names and comments is ASCII;
// inside them it is any UTF-8 without NUL.
#pragma once
#include <string_view>

#include "weft/base/lexer.h"
#include "weft/language/keyword.h"

namespace weft::language {

extern const Lexicon kLexicon;

struct Token : weft::Token {
  Keyword keyword = Keyword::none;  // if it is a word
};
static_assert(sizeof(Token) == sizeof(weft::Token));

class Lexer {
 public:
  // REQUIRES: `text` is shorter than kLongestText and outlives the lexer
  explicit Lexer(std::string_view text) : text_(text), lexer_(kLexicon, text) {}

  Token next() {
    Token result{lexer_.next()};
    if (result.kind == TokenKind::word) {
      const std::string_view from = text_.substr(result.span.offset);
      result.keyword = find_keyword(from.substr(0, result.span.length), from.size());
    }
    return result;
  }

  // The error of the last bad token.
  const Error& error() const { return lexer_.error(); }
  // Whether the last bad token is only unterminated: a string, quoted name or comment without its
  // end.
  bool unfinished() const { return lexer_.unfinished(); }

 private:
  std::string_view text_;
  weft::Lexer lexer_;
};

}  // namespace weft::language
