// weft/text/character_map.h -- the "precompiled_charsmap" of SentencePiece: replaces characters.
//
// Base64 of: the size of a trie in bytes, the trie, and the replacements, each ended by a zero byte.
// The trie is a double array of 32-bit units, little-endian:
//
//   bits 0-7, 31   label            bit 8   the node has a value, in the unit at its own offset
//   bits 10-30     offset, times 256 if bit 9 is set
//   bits 0-30      of a value: where its replacement begins
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"

namespace weft::text {

class CharacterMap {
 public:
  static Result<CharacterMap> parse(std::string_view base64);

  // Replaces graphemes and characters. Of several entries that begin a grapheme, the shortest
  // replaces all of it; this is what models were trained with.
  std::string apply(std::string_view text) const;

 private:
  std::optional<std::string_view> find(std::string_view character) const;

  std::vector<std::uint32_t> trie_;
  std::string replacements_;
};

}  // namespace weft::text
