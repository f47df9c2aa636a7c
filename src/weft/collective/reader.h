// weft/collective/reader.h -- reads the texts of this folder word by word: algorithms, programs, moves.
//
//   Reader reader("block 0: send -- a comment");
//   reader.take_word("BLOCK");   // true: case does not matter
//   reader.number("a block");    // 0
//   reader.take(Symbol::colon);  // true
//   reader.name("an op");        // "send"
//
// The first mistake is kept, and from then on the text is at its end: a parser reads on without asking,
// finds nothing more, and looks at failed() when it is done.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "weft/base/result.h"

namespace weft::collective {

enum class Symbol : std::uint8_t {
  end,     // of the text, or after a mistake
  word,    // ranks, COPY
  number,  // 12
  quoted,  // 'it''s'
  left_paren,
  right_paren,
  left_bracket,
  right_bracket,
  comma,
  colon,
  assign,  // :=
  dot,
  range,       // ..
  arrow,       // =>
  thin_arrow,  // ->
  plus,
  minus,
  star,
  slash,
  equal,
  not_equal,  // <> or !=
  less,
  less_equal,
  greater,
  greater_equal
};

std::string_view name(Symbol symbol);  // for people: "a number", "'('"

struct Token {
  Symbol symbol = Symbol::end;
  Span span;
};

class Reader {
 public:
  // `text` outlives the reader. One of 1 GiB or more is a mistake.
  explicit Reader(std::string_view text);

  const Token& token() const { return token_; }
  std::string_view spelling() const { return spelling(token_); }
  std::string_view spelling(const Token& token) const;
  Token after();  // the token behind this one

  bool at(Symbol symbol) const { return token_.symbol == symbol; }
  bool at_word(std::string_view word) const;  // in any case
  bool at_end() const { return at(Symbol::end); }

  void advance();
  bool take(Symbol symbol);
  bool take_word(std::string_view word);

  // These fail where something else stands, and say so: "expected ')', found 'TO'".
  void expect(Symbol symbol);
  void expect_word(std::string_view word);
  std::string_view name(std::string_view what);
  std::string quoted(std::string_view what);
  std::int64_t number(std::string_view what);
  std::int64_t wide_number(std::string_view what);   // perhaps with a minus
  std::int32_t small_number(std::string_view what);  // the same, of 32 bits

  // From the start of `from` to the end of the last token taken.
  Span since(const Token& from) const;

  void fail(std::string message, std::string hint = {});  // at this token
  void fail_at(Span span, std::string message, std::string hint = {});
  void fail_expected(std::string_view what, std::string hint = {});  // "expected WHAT, found ..."
  // "expected WHAT, found 'redcue'", and which of `candidates` was meant.
  void fail_expected(std::string_view what, std::span<const std::string_view> candidates);
  bool failed() const { return error_.has_value(); }
  const Error& error() const { return *error_; }

 private:
  std::uint64_t digits(std::string_view what, std::uint64_t most);
  Token scan();
  Token scan_quoted(std::size_t start);
  bool skip_blanks();

  std::string_view text_;
  std::size_t place_ = 0;  // behind token_
  std::size_t last_end_ = 0;
  Token token_;
  std::optional<Error> error_;
};

std::string quote(std::string_view text);  // "it's" is 'it''s'
// A name as the texts write it: plain where it is one, quoted where not.
std::string print_name(std::string_view name);

}  // namespace weft::collective
