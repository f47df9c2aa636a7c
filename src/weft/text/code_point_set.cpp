#include "weft/text/code_point_set.h"

#include <algorithm>

namespace weft::text {
namespace {

bool is_hexadecimal(char32_t c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

struct NamedProperty {
  std::string_view name;
  CodePointSet::Property property;
};

bool is_punctuation_or_symbol(char32_t c) {
  static const Categories both = kPunctuation | categories_named("S");
  return has_category(c, both);
}

// Scripts.txt of the Unicode standard, blocks joined where only unassigned code points separate them.
bool is_han(char32_t c) {
  return (c >= 0x2E80 && c <= 0x2E99) || (c >= 0x2E9B && c <= 0x2EF3) || (c >= 0x2F00 && c <= 0x2FD5) ||
         c == 0x3005 || c == 0x3007 || (c >= 0x3021 && c <= 0x3029) || (c >= 0x3038 && c <= 0x303B) ||
         (c >= 0x3400 && c <= 0x4DBF) || (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0xF900 && c <= 0xFA6D) ||
         (c >= 0xFA70 && c <= 0xFAD9) || (c >= 0x16FE2 && c <= 0x16FE3) || (c >= 0x16FF0 && c <= 0x16FF1) ||
         (c >= 0x20000 && c <= 0x2A6DF) || (c >= 0x2A700 && c <= 0x2B739) || (c >= 0x2B740 && c <= 0x2B81D) ||
         (c >= 0x2B820 && c <= 0x2CEA1) || (c >= 0x2CEB0 && c <= 0x2EBE0) || (c >= 0x2F800 && c <= 0x2FA1D) ||
         (c >= 0x30000 && c <= 0x3134A) || (c >= 0x31350 && c <= 0x323AF);
}

constexpr NamedProperty kPosixClasses[] = {
    {"punct", is_punctuation_or_symbol},
    {"space", is_white_space},
    {"word", is_pattern_word},
    {"xdigit", is_hexadecimal},
};

}  // namespace

bool is_pattern_word(char32_t c) {
  const bool superscript_or_fraction = c == 0xB2 || c == 0xB3 || c == 0xB9 || (c >= 0xBC && c <= 0xBE);
  const bool joiner = c == 0x200C || c == 0x200D;
  return superscript_or_fraction || (is_word(c) && !joiner);
}

bool add_property(CodePointSet& set, std::string_view name) {
  if (const Categories categories = categories_named(name); categories != 0) {
    set.categories |= categories;
    return true;
  }
  if (name == "Han") {
    set.properties.push_back(is_han);
    return true;
  }
  if (name == "White_Space") {
    set.properties.push_back(is_white_space);
    return true;
  }
  return false;
}

bool add_posix_class(CodePointSet& set, std::string_view name) {
  if (name == "digit") set.categories |= kDecimal;
  const auto* const at = std::ranges::find(kPosixClasses, name, &NamedProperty::name);
  if (at != std::end(kPosixClasses)) set.properties.push_back(at->property);
  return at != std::end(kPosixClasses) || name == "digit";
}

bool CodePointSet::find_exactly(char32_t c) const {
  const bool found =
      (categories != 0 && has_category(c, categories)) ||
      std::ranges::any_of(ranges, [&](Range range) { return range.first <= c && c <= range.last; }) ||
      std::ranges::any_of(properties, [&](Property property) { return property(c); }) ||
      std::ranges::any_of(members, [&](const CodePointSet& member) { return member.find(c); });
  return found && std::ranges::all_of(also_in, [&](const CodePointSet& other) { return other.find(c); });
}

bool CodePointSet::find(char32_t c) const {
  if (!any_case) return find_exactly(c) != negated;
  char32_t room[8];
  return std::ranges::any_of(case_variants(c, room), [&](char32_t v) { return find_exactly(v); }) != negated;
}

void CodePointSet::prepare() {
  for (char32_t c = 0; c < 128; ++c) ascii_[c] = find(c);
}

}  // namespace weft::text
