// SentencePiece's character maps: a trie of replacements, in base64.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "weft/text/character_map.h"

namespace weft::text {
namespace {

std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  unsigned bits = 0, count = 0;
  for (const char byte : bytes) {
    bits = bits << 8 | static_cast<unsigned char>(byte);
    for (count += 8; count >= 6; count -= 6) out += kDigits[bits >> (count - 6) & 63];
  }
  if (count > 0) out += kDigits[bits << (6 - count) & 63];
  while (out.size() % 4 != 0) out += '=';
  return out;
}

// The trie, its size before it, then the replacements.
std::string packed(const std::vector<std::uint32_t>& trie, std::string_view replacements) {
  std::string bytes;
  const auto add = [&](std::uint32_t number) {
    for (int i = 0; i < 4; ++i) bytes += static_cast<char>(number >> 8 * i & 0xFF);
  };
  add(static_cast<std::uint32_t>(4 * trie.size()));
  for (const std::uint32_t unit : trie) add(unit);
  bytes += replacements;
  return base64(bytes);
}

// "A" becomes "bc"; nothing else is replaced.
std::vector<std::uint32_t> trie_of_a() {
  std::vector<std::uint32_t> trie(0x43, 0);
  trie[0] = 1 << 10;                    // children at 1 ^ byte
  trie[0x40] = 'A' | 1 << 8 | 2 << 10;  // 1 ^ 'A': a value, at 0x40 ^ 2
  trie[0x42] = 3;                       // where the replacement begins
  return trie;
}

TEST(CharacterMap, ReplacesCharactersAndGraphemes) {
  const auto map = CharacterMap::parse(packed(trie_of_a(), std::string("xy\0bc\0", 6)));
  ASSERT_TRUE(map.ok()) << map.error().message;
  EXPECT_EQ(map->apply("A-a-A"), "bc-a-bc");
  EXPECT_EQ(map->apply("A\u0301B"), "bcB");  // the shortest entry replaces the whole grapheme
  EXPECT_EQ(map->apply("A\u0301\u0301\u0301"), "bc\u0301\u0301\u0301");  // longer ones by character
  EXPECT_EQ(CharacterMap::parse("")->apply("A"), "A");
}

TEST(CharacterMap, RefusesWhatIsNotAMap) {
  const auto error = [](std::string_view text) {
    const auto map = CharacterMap::parse(text);
    return map.ok() ? "no error" : map.error().message;
  };
  EXPECT_EQ(error("A?"), "expected base64 in precompiled_charsmap");
  EXPECT_EQ(error(base64("\4\0")), "precompiled_charsmap ends before its trie");
  EXPECT_EQ(error(packed(trie_of_a(), "\xFF")), "expected UTF-8 in precompiled_charsmap");
  // Units that refer outside of the trie or the replacements replace nothing.
  std::vector<std::uint32_t> trie = trie_of_a();
  trie[0x42] = 99;
  EXPECT_EQ(CharacterMap::parse(packed(trie, "x"))->apply("A"), "A");
  trie[0] = 1u << 30;
  EXPECT_EQ(CharacterMap::parse(packed(trie, "x"))->apply("A"), "A");
}

}  // namespace
}  // namespace weft::text
