// weft/base/letters.h -- character classes, and words compared without case.
//
// ASCII only: for keywords and for names defined by Weft.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>

namespace weft {

constexpr bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

// A lookup table, for loops over long texts.
inline constexpr std::array<bool, 256> kInWord = [] {
  std::array<bool, 256> in{};
  for (std::size_t c = 0; c < in.size(); ++c)
    in[c] = is_letter(static_cast<char>(c)) || is_digit(static_cast<char>(c));
  return in;
}();
constexpr bool is_in_word(char c) { return kInWord[static_cast<unsigned char>(c)]; }

// A plain word: a letter or underscore, then letters, digits, underscores.
constexpr bool is_plain_word(std::string_view text) {
  return !text.empty() && is_letter(text[0]) && std::ranges::all_of(text, is_in_word);
}

constexpr char to_lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
constexpr char to_upper(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; }

inline std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), to_lower);
  return out;
}

inline std::string upper(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), to_upper);
  return out;
}

// Case-insensitive equality.
constexpr bool same_word(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, {}, to_lower, to_lower);
}

}  // namespace weft
