// weft/text/pattern_tree.h -- a parsed pattern.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/text/code_point_set.h"
#include "weft/text/pattern_program.h"

namespace weft::text {

struct PatternNode {
  enum class Kind : std::uint8_t {
    sequence,  // the parts in order; the empty pattern has none
    alternatives,
    set,
    repeat,      // parts[0], least to most times
    atomic,      // parts[0]
    look_ahead,  // parts[0], negated or not
    look_back,   // a set, negated or not
    line_begin,
    line_end,
    text_begin,
    text_end,
    last_line_end
  };
  Kind kind = Kind::sequence;
  bool negated = false;
  Greed greed = Greed::greedy;
  std::uint32_t least = 0, most = 0;
  CodePointSet set;
  std::vector<PatternNode> parts;
};

Result<PatternNode> parse_pattern(std::string_view pattern);

}  // namespace weft::text
