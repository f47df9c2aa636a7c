// weft/base/token_reader.h -- reads a text token by token, for recursive-descent parsers.
//
//   TokenReader reader(kLexicon, "block 0: send");
//   reader.take_word("block");      // true
//   reader.number("a block");       // 0
//   reader.take(TokenKind::colon);  // true
//   reader.name("an op");           // "send"
//
// The first error is kept, and from then on the reader is at the end of the text. So a parser needs
// no checks in between: it finds no further tokens and checks failed() at the end.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "weft/base/lexer.h"
#include "weft/base/result.h"

namespace weft {

class TokenReader {
 public:
  // Both must outlive the reader. A text of kLongestText bytes or more is an error.
  TokenReader(const Lexicon& lexicon, std::string_view text);

  const Token& token() const { return token_; }
  std::string_view spelling() const { return spelling(token_); }
  std::string_view spelling(const Token& token) const { return spelling(token.span); }
  std::string_view spelling(Span span) const { return text_.substr(span.offset, span.length); }
  Token after() const;                                         // the token after this one
  bool touches_next() const { return lexer_.touches_next(); }  // whether nothing is between the two

  bool at(TokenKind kind) const { return token_.kind == kind; }
  bool at_word(std::string_view word) const;  // ignores case if the lexicon does
  bool at_end() const { return at(TokenKind::end); }

  void advance();
  bool take(TokenKind kind);
  bool take_word(std::string_view word);

  // These fail on any other token: "expected ')', found 'TO'".
  void expect(TokenKind kind);
  void expect_word(std::string_view word);
  std::string_view name(std::string_view what);
  std::string string(std::string_view what);         // without its quotes
  std::int64_t number(std::string_view what);        // an integer
  std::int64_t wide_number(std::string_view what);   // may have a minus sign
  std::int32_t small_number(std::string_view what);  // the same, 32-bit
  double real(std::string_view what);
  // The rest of the line after this token, without surrounding blanks; continues with the next
  // line.
  std::string_view line();

  // From the start of `from` to the end of the last token read.
  Span since(Span from) const;
  Span since(const Token& from) const { return since(from.span); }

  void fail(std::string message, std::string hint = {}) {
    fail_at(token_.span, std::move(message), std::move(hint));
  }
  // At the end of the text, the position is after the last token.
  void fail_at(Span span, std::string message, std::string hint = {});
  void fail_expected(std::string_view what, std::string hint = {});  // "expected WHAT, found ..."
  // "expected WHAT, found 'redcue'", with a suggestion from `candidates`.
  void fail_expected(std::string_view what, std::span<const std::string_view> candidates);
  bool failed() const { return error_.has_value(); }
  const Error& error() const { return *error_; }

  std::string name(TokenKind kind) const;  // for messages: "a number", "'('"

 private:
  std::uint64_t digits(std::string_view what, std::uint64_t most);
  void read();
  void stop();

  const Lexicon* lexicon_;
  std::string_view text_;
  Lexer lexer_;
  std::uint32_t last_end_ = 0;  // end of the last token read
  Token token_;
  std::optional<Error> error_;
};

}  // namespace weft
