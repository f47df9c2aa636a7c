// weft/base/lexer.h -- cuts a text into tokens: one lexer, to which each language gives its lexicon.
//
//   constexpr Sign kSigns[] = {{"<=", TokenKind::less_equal}, {"<", TokenKind::less}};
//   constexpr Quote kQuotes[] = {{.mark = '\'', .kind = TokenKind::string}};
//   constexpr Lexicon kLexicon = indexed({.signs = kSigns, .quotes = kQuotes, .line_comment = "#"});
//
//   Lexer lexer(kLexicon, "a <= 'b'  # and so on");
//   lexer.next();   // word [0, 1), less_equal [2, 2), string [5, 3), then end from now on
//
// Blanks and comments separate tokens and are otherwise nothing. Text outside quotes and comments is ASCII.
// Nothing is copied or allocated unless a token is bad. After a bad token the lexer goes on behind it, so
// that a caller who only looks for the next semicolon can.
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

// How a mark that opens and closes stands inside its quotes.
enum class Escape : std::uint8_t {
  none,      // it does not
  doubled,   // 'it''s'
  backslash  // "say \"d\"", and \n for a new line
};

struct Quote {
  char mark = '\'';
  TokenKind kind = TokenKind::string;
  Escape escape = Escape::none;
  bool in_one_line = false;
  std::string_view not_closed = "quoted text is not closed", remedy = {};
  std::string_view empty = {};  // what is wrong with an empty one; nothing, where it says nothing
};

enum class Numbers : std::uint8_t {
  none,    // digits are letters
  whole,   // 12
  real,    // 12, 0.5, 1e-5
  grouped  // these and 1_000; 1. and .5 are mistakes
};

struct Lexicon {
  std::span<const Sign> signs = {};  // longer ones before those they start with
  std::span<const Quote> quotes = {};
  std::string_view line_comment = {};
  Numbers numbers = Numbers::whole;
  bool block_comments = false;  // /* that /* may */ nest */
  bool joined_lines = false;    // a backslash at the end of a line is a blank
  bool words_have_case = true;  // else SELECT is select, to those who ask for it
  bool wide_words = false;      // whatever begins nothing else is part of a word
  bool checks_utf8 = false;     // in quotes and comments: well-formed, without NUL
  // What is wrong with a character that begins nothing.
  Error (*stranger)(std::string_view character, Span span) = nullptr;

  static constexpr std::uint8_t kWord = 1, kFirst = 2, kDigit = 4, kGap = 8, kQuote = 16, kLongSign = 32,
                                kSingle = 64;
  // Filled by indexed(): what a byte may begin or belong to, and the sign it is by itself.
  std::array<std::uint8_t, 256> classes = {};
  std::array<TokenKind, 256> singles = {};
};

// REQUIRES: of a lexicon that is given to a lexer: it was made by this.
consteval Lexicon indexed(Lexicon lexicon);

// The text inside the quotes. REQUIRES: `token` is one of the lexicon's quotes, closed.
std::string unquoted(const Lexicon& lexicon, std::string_view token);

class Lexer {
 public:
  // `text` is shorter than kLongestText; both outlive the lexer.
  Lexer(const Lexicon& lexicon, std::string_view text);

  Token next();

  // What was wrong with the last bad token.
  const Error& error() const { return error_; }
  // Whether the last bad token only lacks its end: a quotation or comment left open.
  bool unfinished() const { return unfinished_; }

  // Whether a token begins right behind the last.
  bool touches_next() const { return !scanner_.at_end() && !is_blank(scanner_.here()); }
  // What stands behind the last token on its line, without blanks around it; goes on behind it.
  std::string_view rest_of_line();
  std::size_t place() const { return scanner_.place(); }

 private:
  // These return false at a character that may not stand there, with error_ set.
  bool skip_gap();
  bool skip_line_comment();
  bool skip_block_comment();
  bool step();  // over one character of a quotation or comment

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
