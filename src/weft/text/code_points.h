// weft/text/code_points.h -- the code points of well-formed UTF-8.
//
//   for (std::size_t at = 0; at < text.size();) {
//     const CodePoint c = code_point_at(text, at);
//     at += c.length;
//   }
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace weft::text {

struct CodePoint {
  char32_t value = 0;
  std::size_t length = 0;  // in bytes
};

// REQUIRES: a code point of well-formed UTF-8 begins at `at`.
inline CodePoint code_point_at(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[at + i]); };
  const unsigned lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  if (lead < 0xE0) return {static_cast<char32_t>((lead & 0x1Fu) << 6 | (byte(1) & 0x3Fu)), 2};
  if (lead < 0xF0)
    return {static_cast<char32_t>((lead & 0x0Fu) << 12 | (byte(1) & 0x3Fu) << 6 | (byte(2) & 0x3Fu)), 3};
  return {static_cast<char32_t>((lead & 0x07u) << 18 | (byte(1) & 0x3Fu) << 12 | (byte(2) & 0x3Fu) << 6 |
                                (byte(3) & 0x3Fu)),
          4};
}

// The code point that ends at `end`. REQUIRES: end > 0 and well-formed UTF-8 before it.
inline CodePoint code_point_before(std::string_view text, std::size_t end) {
  std::size_t at = end - 1;
  while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0u) == 0x80u) --at;
  return code_point_at(text, at);
}

inline void append_code_point(std::string& out, char32_t c) {
  const auto add = [&](char32_t byte) { out += static_cast<char>(static_cast<unsigned char>(byte)); };
  if (c < 0x80) {
    add(c);
  } else if (c < 0x800) {
    add(0xC0 | c >> 6);
    add(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    add(0xE0 | c >> 12);
    add(0x80 | (c >> 6 & 0x3F));
    add(0x80 | (c & 0x3F));
  } else {
    add(0xF0 | c >> 18);
    add(0x80 | (c >> 12 & 0x3F));
    add(0x80 | (c >> 6 & 0x3F));
    add(0x80 | (c & 0x3F));
  }
}

inline std::size_t count_code_points(std::string_view text) {
  std::size_t count = 0;
  for (const char byte : text) count += (static_cast<unsigned char>(byte) & 0xC0u) != 0x80u;
  return count;
}

// Replaces each maximal part of an ill-formed sequence by U+FFFD, as the Unicode standard recommends
// (section 3.9): the first two bytes of a three-byte character become one U+FFFD.
std::string replace_ill_formed(std::string_view bytes);

// The number of bytes at the end of `bytes` that may be the beginning of a character.
std::size_t unfinished_bytes(std::string_view bytes);

}  // namespace weft::text
