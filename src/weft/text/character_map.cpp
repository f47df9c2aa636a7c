#include "weft/text/character_map.h"

#include <algorithm>

#include "weft/base/utf8.h"
#include "weft/text/code_points.h"
#include "weft/text/unicode_forms.h"

namespace weft::text {
namespace {

constexpr std::size_t kLongestMappedGrapheme = 5;  // bytes: longer graphemes are mapped by character

std::optional<std::uint32_t> base64_digit(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  if (c == '+') return 62;
  if (c == '/') return 63;
  return std::nullopt;
}

std::optional<std::string> decode_base64(std::string_view text) {
  while (text.ends_with('=')) text.remove_suffix(1);
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3 + 3);
  std::uint32_t bits = 0;
  unsigned count = 0;
  for (const char c : text) {
    const auto digit = base64_digit(c);
    if (!digit) return std::nullopt;
    bits = bits << 6 | *digit;
    count += 6;
    if (count >= 8) {
      count -= 8;
      bytes += static_cast<char>(bits >> count & 0xFF);
    }
  }
  return bytes;
}

std::uint32_t little_endian(std::string_view bytes) {
  std::uint32_t number = 0;
  for (std::size_t i = 4; i-- > 0;) number = number << 8 | static_cast<unsigned char>(bytes[i]);
  return number;
}

std::uint32_t offset_of(std::uint32_t unit) { return unit >> 10 << ((unit & 1u << 9) >> 6); }

}  // namespace

Result<CharacterMap> CharacterMap::parse(std::string_view base64) {
  const auto bytes = decode_base64(base64);
  if (!bytes) return user_error("expected base64 in precompiled_charsmap");
  CharacterMap map;
  if (bytes->empty()) return map;
  const std::string_view all = *bytes;
  const std::size_t size = all.size() < 4 ? SIZE_MAX : little_endian(all);
  if (size > all.size() - 4 || size % 4 != 0)
    return user_error("precompiled_charsmap ends before its trie", "the file may be truncated");
  for (std::size_t at = 4; at < 4 + size; at += 4) map.trie_.push_back(little_endian(all.substr(at)));
  map.replacements_ = all.substr(4 + size);
  if (valid_utf8(map.replacements_) != map.replacements_)
    return user_error("expected UTF-8 in precompiled_charsmap");
  return map;
}

std::optional<std::string_view> CharacterMap::find(std::string_view character) const {
  if (trie_.empty()) return std::nullopt;
  std::size_t node = offset_of(trie_[0]);
  for (const char c : character) {
    const auto label = static_cast<unsigned char>(c);
    if (label == 0) break;
    node ^= label;
    if (node >= trie_.size() || (trie_[node] & (1u << 31 | 0xFFu)) != label) break;
    const bool has_value = (trie_[node] >> 8 & 1u) != 0;
    node ^= offset_of(trie_[node]);
    if (!has_value) continue;
    if (node >= trie_.size()) break;
    const std::size_t begin = trie_[node] & ~(1u << 31);
    if (begin >= replacements_.size() || !starts_character(replacements_[begin])) break;
    const std::size_t end = std::min(replacements_.find('\0', begin), replacements_.size());
    return std::string_view(replacements_).substr(begin, end - begin);
  }
  return std::nullopt;
}

std::string CharacterMap::apply(std::string_view text) const {
  std::string out;
  out.reserve(text.size());
  for (const std::string_view grapheme : graphemes(text)) {
    if (grapheme.size() <= kLongestMappedGrapheme)
      if (const auto replacement = find(grapheme)) {
        out += *replacement;
        continue;
      }
    for (std::size_t at = 0; at < grapheme.size();) {
      const std::string_view character = grapheme.substr(at, code_point_at(grapheme, at).length);
      out += find(character).value_or(character);
      at += character.size();
    }
  }
  return out;
}

}  // namespace weft::text
