#include "weft/text/byte_alphabet.h"

#include <array>
#include <cstdint>

#include "weft/text/code_points.h"

namespace weft::text {
namespace {

constexpr char32_t kFirstReplacement = 0x100;

struct ByteAlphabet {
  std::array<char32_t, 256> character = {};
  std::array<std::int16_t, 0x200> byte = {};  // -1: none
};

constexpr bool stands_for_itself(unsigned byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

constexpr ByteAlphabet byte_alphabet() {
  ByteAlphabet alphabet;
  for (std::int16_t& byte : alphabet.byte) byte = -1;
  char32_t next = kFirstReplacement;
  for (unsigned byte = 0; byte < 256; ++byte) {
    alphabet.character[byte] = stands_for_itself(byte) ? byte : next++;
    alphabet.byte[alphabet.character[byte]] = static_cast<std::int16_t>(byte);
  }
  return alphabet;
}

constexpr ByteAlphabet kBytes = byte_alphabet();

}  // namespace

void append_byte_characters(std::string& out, std::string_view bytes) {
  for (const char byte : bytes) append_code_point(out, kBytes.character[static_cast<unsigned char>(byte)]);
}

std::optional<std::string> bytes_of_characters(std::string_view characters) {
  std::string bytes;
  for (std::size_t at = 0; at < characters.size();) {
    const CodePoint c = code_point_at(characters, at);
    at += c.length;
    if (c.value >= kBytes.byte.size() || kBytes.byte[c.value] < 0) return std::nullopt;
    bytes += static_cast<char>(kBytes.byte[c.value]);
  }
  return bytes;
}

}  // namespace weft::text
