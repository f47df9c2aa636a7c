// weft/base/token.h -- the tokens of Weft's languages.
#pragma once
#include <cstdint>

#include "weft/base/result.h"

namespace weft {

// No language uses all of them: its Lexicon selects some.
enum class TokenKind : std::uint8_t {
  end,     // end of the text
  bad,     // not a token: Lexer::error() says why
  word,    // select, x1
  quoted,  // "a name"
  number,  // 12, 1_000, 0.02, 1e-5
  string,  // 'it''s'
  left_paren,
  right_paren,
  left_bracket,
  right_bracket,
  comma,
  colon,
  semicolon,
  dot,
  range,  // ..
  plus,
  minus,
  star,
  slash,
  percent,
  equal,
  double_equal,
  not_equal,  // <> or !=
  less,
  less_equal,
  greater,
  greater_equal,
  assign,     // :=
  arrow,      // =>
  thin_arrow  // ->
};

// The size of two machine words, so that it is passed in registers.
struct alignas(8) Token {
  Span span;  // including quotes; length 0 at the end of the text
  TokenKind kind = TokenKind::end;
  bool escaped = false;  // quoted, string: contains an escape; number: contains _
  bool whole = false;    // number: without fraction and exponent

  std::uint32_t end() const { return span.offset + span.length; }
};

}  // namespace weft
