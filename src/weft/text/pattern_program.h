// weft/text/pattern_program.h -- a pattern as instructions for a backtracking matcher.
//
//   a|\s+(?!\S)    0  split      1 or 3       take the first; on failure the second
//                  1  one        {a}
//                  2  jump       7
//                  3  span       \s, 1 or more, greedy
//                  4  look       not ahead: 5, then 7
//                  5  one        \S
//                  6  end
//                  7  end
#pragma once
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "weft/base/result.h"
#include "weft/text/code_point_set.h"

namespace weft::text {

constexpr std::uint32_t kUnbounded = UINT32_MAX;

enum class Greed : std::uint8_t { greedy, lazy, possessive };

struct Instruction {
  enum class Kind : std::uint8_t {
    one,         // a code point of `set`
    span,        // `least` to `most` code points of `set`
    split,       // try `next`, then `other`
    jump,        // go to `next`
    look_ahead,  // the instructions at `next` must match here (or not), then go to `other`
    look_back,   // the code point before is in `set` (or not)
    atomic,      // match the instructions at `next` without backtracking into them, then go to `other`
    line_begin,
    line_end,
    text_begin,
    text_end,
    last_line_end,  // the end of the text, or before a newline that ends it
    end
  };
  Kind kind = Kind::end;
  Greed greed = Greed::greedy;
  bool negated = false;
  std::uint32_t set = 0, least = 0, most = 0, next = 0, other = 0;
};

struct PatternProgram {
  std::string literal;  // if not empty, the whole pattern
  std::vector<Instruction> code;
  std::vector<CodePointSet> sets;
  std::bitset<256> first;  // the first bytes that a match can have; all if it can be empty
};

Result<PatternProgram> compile_pattern(std::string_view pattern);

}  // namespace weft::text
