// weft/text/byte_alphabet.h -- bytes as printable characters, as byte-level tokenizers write them.
//
//   "in a\n"    "inĠaĊ"       printable bytes of Latin-1 are themselves, the others U+0100 and up
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace weft::text {

void append_byte_characters(std::string& out, std::string_view bytes);

// The bytes that the characters stand for; nullopt if one of them stands for none.
std::optional<std::string> bytes_of_characters(std::string_view characters);

}  // namespace weft::text
