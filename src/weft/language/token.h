// weft/language/token.h -- the smallest pieces of a script.
#pragma once
#include <cstdint>

#include "weft/base/result.h"
#include "weft/language/keyword.h"

namespace weft::language {

enum class TokenKind : std::uint8_t {
  end,     // of the text
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
  semicolon,
  plus,
  minus,
  star,
  slash,
  percent,
  equal,
  not_equal,
  less,
  less_equal,
  greater,
  greater_equal,
  arrow,
  // No statement has these; they are tokens so that the parser can say what to write instead.
  double_equal,
  dot
};

// Two machine words, so that it is passed and copied in registers.
struct alignas(8) Token {
  Span span;  // with its quotes; of length 0 at the end of the text
  TokenKind kind = TokenKind::end;
  Keyword keyword = Keyword::none;  // of a word
  bool escaped = false;             // quoted, string: has a doubled quote; number: has a _
  bool whole = false;               // number: has neither fraction nor exponent

  std::uint32_t end() const { return span.offset + span.length; }
};

}  // namespace weft::language
