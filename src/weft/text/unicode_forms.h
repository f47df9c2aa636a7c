// weft/text/unicode_forms.h -- normal forms of Unicode, and the steps that normalizers build on.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weft::text {

enum class NormalForm : std::uint8_t { nfc, nfd, nfkc, nfkd };

std::string normal_form(std::string_view text, NormalForm form);

std::string lowercase(std::string_view text);
std::string without_marks(std::string_view text);             // the categories Mn, Mc and Me
std::string without_nonspacing_marks(std::string_view text);  // Mn

// The grapheme clusters of the text: what a reader sees as one character.
std::vector<std::string_view> graphemes(std::string_view text);

}  // namespace weft::text
