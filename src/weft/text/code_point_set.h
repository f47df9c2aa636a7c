// weft/text/code_point_set.h -- a set of code points, as a class of a pattern describes it.
//
//   [^\s\p{L}a-z]    negated; members \s and \p{L}; range a to z
//   [\p{L}&&[^a-z]]  members \p{L}; also_in [^a-z]
#pragma once
#include <bitset>
#include <cstdint>
#include <string_view>
#include <vector>

#include "weft/text/unicode.h"

namespace weft::text {

class CodePointSet {
 public:
  struct Range {
    char32_t first = 0, last = 0;
  };
  using Property = bool (*)(char32_t);

  Categories categories = 0;
  std::vector<Property> properties;
  std::vector<Range> ranges;
  std::vector<CodePointSet> members;  // sets that this one contains
  std::vector<CodePointSet> also_in;  // sets that an element must be in too
  bool negated = false;
  bool any_case = false;  // contains what differs from an element only in case

  void add(char32_t c) { ranges.push_back({c, c}); }

  // Call once before contains(): ASCII is answered from a table.
  void prepare();
  bool contains(char32_t c) const { return c < 128 ? ascii_[c] : find(c); }
  const std::bitset<128>& ascii() const { return ascii_; }

 private:
  bool find(char32_t c) const;
  bool find_exactly(char32_t c) const;

  std::bitset<128> ascii_;
};

// \w in a pattern. Unlike in the Unicode standard, joiners are not in it, and some numbers are.
bool is_pattern_word(char32_t c);

// The property or category of \p{name}; false if it is not known.
bool add_property(CodePointSet& set, std::string_view name);
// The same for [[:name:]].
bool add_posix_class(CodePointSet& set, std::string_view name);

}  // namespace weft::text
