// weft/text/pattern_class.h -- parses the classes and escapes of a pattern.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

#include "weft/base/result.h"
#include "weft/text/code_point_set.h"

namespace weft::text {

constexpr std::size_t kMostPatternDepth = 50;  // of nested groups and classes

// A position in a pattern.
class PatternReader {
 public:
  explicit PatternReader(std::string_view pattern) : pattern_(pattern) {}

  bool done() const { return at_ == pattern_.size(); }
  std::string_view rest() const { return pattern_.substr(at_); }
  bool take(std::string_view text);
  char32_t take_any();  // REQUIRES: !done()

  // "a pattern of the tokenizer: <what> at character 7 of '...'".
  Error error(std::string_view what) const;

 private:
  std::string_view pattern_;
  std::size_t at_ = 0;
};

// An escape, after the backslash: \n, \x{4e2d}, \p{L}, \s.
Result<CodePointSet> parse_escape(PatternReader& reader);
// A class, after the first bracket.
Result<CodePointSet> parse_class(PatternReader& reader, bool any_case, std::size_t depth);

}  // namespace weft::text
