// weft/language/lexer.h -- cuts a script into tokens.
//
//   Lexer lexer("SELECT x -- all of it");
//   lexer.next();   // word, keyword SELECT, [0, 6)
//   lexer.next();   // word, keyword none, [7, 8)
//   lexer.next();   // end, from now on
//
// Blanks, comments (-- to the end of the line, /* nested /* like */ this */) and a backslash
// at the end of a line separate tokens and are otherwise nothing. Text outside strings,
// quoted names and comments is ASCII; inside them it is any UTF-8 without NUL.
//
// Nothing is copied or allocated unless a token is bad. After a bad token the lexer goes on
// behind it, so that a caller who only looks for the next semicolon can.
#pragma once
#include <cstdint>
#include <string_view>

#include "weft/base/result.h"
#include "weft/language/token.h"

namespace weft::language {

inline constexpr std::size_t kLongestText = std::size_t{1} << 30;  // bytes; spans have 32 bits

class Lexer {
 public:
  // `text` is shorter than kLongestText and outlives the lexer.
  explicit Lexer(std::string_view text);

  Token next();

  // What was wrong with the last bad token.
  const Error& error() const { return error_; }
  // Whether the last bad token only lacks its end: a string, quoted name or comment left open.
  bool unfinished() const { return unfinished_; }

 private:
  // These return false at a character that may not stand there, with error_ set.
  bool skip_blanks();
  bool skip_line_comment();
  bool skip_block_comment();
  bool step();  // over one character of a string, quoted name or comment

  Token word(const char* start);
  Token number(const char* start);
  Token bare_fraction(const char* start);
  Token quotation(const char* start, char quote);
  Token strange(const char* start);

  Token token(TokenKind kind, const char* start) const;  // from `start` to here
  Token refuse(const char* start, std::string message, std::string hint = {});
  void fail(Span span, std::string message, std::string hint = {});
  std::string_view shown(const char* start) const;
  std::uint32_t offset(const char* place) const;

  const char* begin_;
  const char* at_;
  const char* end_;
  bool unfinished_ = false;
  Error error_;
};

}  // namespace weft::language
