// weft/text/pattern.h -- the regular expressions that tokenizers split text by.
//
//   WEFT_TRY(pattern, Pattern::parse(R"(\p{L}+|\p{N}{1,3}|\s+(?!\S)|\s+)"));
//   WEFT_TRY(matches, pattern.find_all("in  1995"));    // 0-2, 2-3, 3-4, 4-7, 7-8
//
// A subset of the syntax and meaning of Oniguruma, the library that tokenizer.json is written for:
// ordered alternatives, greedy, lazy and possessive repetition, classes with \p{..}, [..] and &&,
// groups with (?:..), (?i:..) and (?>..), look-ahead, and look-behind of one character. `^` and `$`
// match at lines. As there, {1,3}+ repeats: only ?+, *+ and ++ are possessive. Anything else is an
// error that names the construct.
#pragma once
#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

#include "weft/base/result.h"

namespace weft::text {

struct PatternProgram;

// A range of bytes.
struct Match {
  std::size_t begin = 0, end = 0;

  friend bool operator==(const Match&, const Match&) = default;
};

class Pattern {
 public:
  static Result<Pattern> parse(std::string_view pattern);
  static Pattern literal(std::string_view text);  // matches this text

  // The matches in `text`, well-formed UTF-8, from left to right without overlap. Fails if a pattern
  // takes too long by backtracking.
  Result<std::vector<Match>> find_all(std::string_view text) const;

 private:
  explicit Pattern(std::shared_ptr<const PatternProgram> program) : program_(std::move(program)) {}

  std::shared_ptr<const PatternProgram> program_;
};

}  // namespace weft::text
