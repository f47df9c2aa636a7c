// weft/base/lexer.h -- splits a text into tokens; each language supplies its lexicon.
//
//   constexpr Sign kSigns[] = {{"<=", TokenKind::less_equal}, {"<", TokenKind::less}};
//   constexpr Quote kQuotes[] = {{.mark = '\'', .kind = TokenKind::string}};
//   constexpr Lexicon kLexicon = indexed({.signs = kSigns, .quotes = kQuotes, .line_comment = "#"});
//
//   Lexer lexer(kLexicon, "a <= 'b'  # and so on");
//   lexer.next();   // word [0, 1), less_equal [2, 2), string [5, 3), then end from now on
//
// Blanks and comments only separate tokens. Text outside quotes and comments is ASCII. Nothing is
// copied or allocated unless a token is bad. After a bad token the lexer continues behind it, which
// suffices for a caller that searches for the next semicolon.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "weft/base/letters.h"
#include "weft/base/result.h"
#include "weft/base/scanner.h"
#include "weft/base/token.h"

namespace weft {

inline constexpr std::size_t kLongestText = std::size_t{1} << 30;  // bytes; spans have 32 bits

struct Sign {
  std::string_view spelling;
  TokenKind kind;
};

// How the quotation mark is escaped inside its quotes.
enum class Escape : std::uint8_t {
  none,      // it cannot be
  doubled,   // 'it''s'
  backslash  // "say \"d\"", and \n for a newline
};

struct Quote {
  char mark = '\'';
  TokenKind kind = TokenKind::string;
  Escape escape = Escape::none;
  bool in_one_line = false;
  std::string_view not_closed = "quoted text is not closed", remedy = {};
  std::string_view empty = {};  // the error for an empty one; if not set, it may be empty
};

enum class Numbers : std::uint8_t {
  none,    // digits are letters
  whole,   // 12
  real,    // 12, 0.5, 1e-5
  grouped  // real and 1_000; 1. and .5 are errors
};

struct Lexicon {
  std::span<const Sign> signs = {};  // longer signs before their prefixes
  std::span<const Quote> quotes = {};
  std::string_view line_comment = {};
  Numbers numbers = Numbers::whole;
  bool block_comments = false;  // /* that /* may */ nest */
  bool joined_lines = false;    // a backslash at the end of a line is a blank
  bool words_have_case = true;  // false: keyword lookup ignores case
  bool wide_words = false;      // characters with no other meaning are part of words
  bool checks_utf8 = false;     // in quotes and comments: well-formed, without NUL
  // The error for a character that cannot begin a token.
  Error (*stranger)(std::string_view character, Span span) = nullptr;

  static constexpr std::uint8_t kWord = 1, kFirst = 2, kDigit = 4, kGap = 8, kQuote = 16, kLongSign = 32,
                                kSingle = 64;
  // Set by indexed(): what a byte may begin or belong to, and its single-character sign.
  std::array<std::uint8_t, 256> classes = {};
  std::array<TokenKind, 256> singles = {};
};

// Fills in the lookup tables. REQUIRES: every lexicon passed to a Lexer is a result of this.
consteval Lexicon indexed(Lexicon lexicon);

// The text inside the quotes. REQUIRES: `token` is a closed quotation of the lexicon
std::string unquoted(const Lexicon& lexicon, std::string_view token);

class Lexer {
 public:
  // REQUIRES: `text` is shorter than kLongestText; both outlive the lexer
  Lexer(const Lexicon& lexicon, std::string_view text);

  Token next();

  // The error of the last bad token.
  const Error& error() const { return error_; }
  // Whether the last bad token is only unterminated: a quotation or comment without its end.
  bool unfinished() const { return unfinished_; }

  // Whether the next token follows the last one directly.
  bool touches_next() const { return !scanner_.at_end() && !is_blank(scanner_.here()); }
  // The rest of the line after the last token, without surrounding blanks; continues after it.
  std::string_view rest_of_line();
  std::size_t place() const { return scanner_.place(); }

 private:
  // These return false and set error_ at a character that is not allowed there.
  bool skip_gap();
  bool skip_line_comment();
  bool skip_block_comment();
  bool step();  // skips one character of a quotation or comment

  Token number(std::size_t start);
  Token bare_fraction(std::size_t start);
  Token quotation(std::size_t start);
  Token strange(std::size_t start);

  bool is(std::uint8_t wanted) const {
    return (lexicon_->classes[static_cast<unsigned char>(scanner_.here())] & wanted) != 0;
  }
  Token token(TokenKind kind, std::size_t start) const;  // from `start` to here
  Token refuse(std::size_t start, std::string message, std::string hint = {});
  void fail(Span span, std::string message, std::string hint = {});
  std::string_view shown(std::size_t start) const { return scanner_.text_since(start).substr(0, 40); }

  const Lexicon* lexicon_;
  Scanner scanner_;
  bool unfinished_ = false;
  Error error_;
};

consteval Lexicon indexed(Lexicon lexicon) {
  const auto at = [](auto& table, char c) -> auto& { return table[static_cast<unsigned char>(c)]; };
  const bool counts = lexicon.numbers != Numbers::none;
  for (std::size_t c = 0; c < lexicon.classes.size(); ++c) {
    const char letter = static_cast<char>(c);
    std::uint8_t& what = lexicon.classes[c];
    if (is_blank(letter)) what |= Lexicon::kGap;
    if (is_letter(letter)) what |= Lexicon::kFirst | Lexicon::kWord;
    if (is_digit(letter))
      what |= counts ? Lexicon::kDigit | Lexicon::kWord : Lexicon::kFirst | Lexicon::kWord;
  }
  for (const Sign& sign : lexicon.signs) {
    at(lexicon.classes, sign.spelling[0]) |=
        sign.spelling.size() == 1 ? Lexicon::kSingle : Lexicon::kLongSign;
    if (sign.spelling.size() == 1) at(lexicon.singles, sign.spelling[0]) = sign.kind;
  }
  for (const Quote& quote : lexicon.quotes) at(lexicon.classes, quote.mark) |= Lexicon::kQuote;
  if (!lexicon.line_comment.empty()) at(lexicon.classes, lexicon.line_comment[0]) |= Lexicon::kGap;
  if (lexicon.block_comments) at(lexicon.classes, '/') |= Lexicon::kGap;
  if (lexicon.joined_lines) at(lexicon.classes, '\\') |= Lexicon::kGap;
  if (lexicon.wide_words)
    for (std::uint8_t& what : lexicon.classes)
      if (what == 0) what = Lexicon::kFirst | Lexicon::kWord;
  return lexicon;
}

}  // namespace weft
