// weft/base/utf8.h -- character boundaries in UTF-8.
#pragma once
#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

namespace weft {

// The length in bytes of the first character of `text`, or 0 if it is not well-formed UTF-8
// (Unicode, table 3-7: no overlong forms, no surrogates, nothing above U+10FFFF).
constexpr std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  const auto follows = [&](std::size_t i) { return (byte(i) & 0xC0u) == 0x80u; };
  const unsigned lead = byte(0);
  if (lead < 0x80) return text.empty() ? 0 : 1;
  if (lead >= 0xC2 && lead <= 0xDF) return follows(1) ? 2 : 0;
  if (lead >= 0xE0 && lead <= 0xEF) {
    if (lead == 0xE0 && byte(1) < 0xA0) return 0;
    if (lead == 0xED && byte(1) > 0x9F) return 0;
    return follows(1) && follows(2) ? 3 : 0;
  }
  if (lead >= 0xF0 && lead <= 0xF4) {
    if (lead == 0xF0 && byte(1) < 0x90) return 0;
    if (lead == 0xF4 && byte(1) > 0x8F) return 0;
    return follows(1) && follows(2) && follows(3) ? 4 : 0;
  }
  return 0;
}

// The text with each byte that is not part of a character replaced by U+FFFD.
inline std::string valid_utf8(std::string_view text) {
  std::string valid;
  valid.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    valid += length == 0 ? std::string_view("\xEF\xBF\xBD") : text.substr(0, length);
    text.remove_prefix(std::max<std::size_t>(1, length));
  }
  return valid;
}

// Whether `byte` is not a continuation byte.
constexpr bool starts_character(char byte) { return (byte & 0xC0) != 0x80; }

// Whether `text` begins with a control character: below a blank, DEL, or U+0080 to U+009F.
constexpr bool begins_with_control(std::string_view text) {
  if (text.empty()) return false;
  const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(text[at]); };
  return byte(0) < 0x20 || byte(0) == 0x7F ||
         (byte(0) == 0xC2 && text.size() > 1 && byte(1) >= 0x80 && byte(1) < 0xA0);
}

}  // namespace weft
