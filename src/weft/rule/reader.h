// weft/rule/reader.h -- reads rule text word by word.
//
//   Reader reader("rule tidy  # a comment\n  why two words");
//   reader.take_word("rule");   // true
//   reader.word("a name");      // "tidy"
//   reader.at_word("why");      // true
//   reader.line();              // "two words"
//
// The first mistake is kept, and from then on the text is at its end: a parser reads on without asking,
// finds nothing more, and looks at failed() when it is done.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "weft/base/result.h"

namespace weft::rule {

enum class Mark : std::uint8_t {
  end,     // of the text, or after a mistake
  word,    // contract, B
  number,  // 12
  real,    // 0.5, 1e-05
  quoted,  // 'sum'
  left_paren,
  right_paren,
  left_bracket,
  right_bracket,
  comma,
  colon,
  dot,
  plus,
  minus,
  star,
  slash,
  percent,
  equal,
  not_equal,  // != or <>
  less,
  less_equal,
  greater,
  greater_equal
};

std::string_view name(Mark mark);  // for people: "a number", "'('"

struct Piece {
  Mark mark = Mark::end;
  Span span;
};

class Reader {
 public:
  // `text` outlives the reader. One of 16 MiB or more is a mistake.
  explicit Reader(std::string_view text);

  const Piece& piece() const { return piece_; }
  std::string_view spelling() const { return spelling(piece_.span); }
  std::string_view spelling(Span span) const { return text_.substr(span.offset, span.length); }
  Mark after() const;         // the mark behind this piece
  bool touches_next() const;  // whether nothing stands between this piece and the next

  bool at(Mark mark) const { return piece_.mark == mark; }
  bool at_word(std::string_view word) const { return at(Mark::word) && spelling() == word; }
  bool at_end() const { return at(Mark::end); }

  void advance();
  bool take(Mark mark);
  bool take_word(std::string_view word);

  // These fail where something else stands: "expected ')', found 'to'".
  void expect(Mark mark);
  std::string_view word(std::string_view what);
  std::int64_t number();  // REQUIRES: at(number)
  double real();          // REQUIRES: at(real)
  // What stands behind this piece on its line, without blanks around it; goes on with the next line.
  std::string_view line();

  // From the start of `from` to the end of the last piece taken.
  Span since(Span from) const;

  void fail_at(Span span, std::string message, std::string hint = {});
  void fail_expected(std::string_view what, std::string hint = {});
  bool failed() const { return error_.has_value(); }
  const Error& error() const { return *error_; }

 private:
  Piece scan(std::size_t& place, std::optional<Error>& mistake) const;

  std::string_view text_;
  std::size_t place_ = 0;     // behind piece_
  std::size_t last_end_ = 0;  // behind the last piece taken
  Piece piece_;
  std::optional<Error> error_;
};

}  // namespace weft::rule
