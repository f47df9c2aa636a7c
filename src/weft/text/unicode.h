// weft/text/unicode.h -- the properties of code points that tokenizers split and normalize by.
//
//   has_category(U'ä', kLetter)      is_white_space(U'\u3000')      to_lower(U'Ä') is U'ä'
//
// The data is that of the library utf8proc.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

namespace weft::text {

// A set of general categories: one bit each, in utf8proc's order.
using Categories = std::uint32_t;

// "L", "Lu", "Nd": the set of a name of the Unicode standard; 0 if there is none.
Categories categories_named(std::string_view name);

bool has_category(char32_t c, Categories categories);

extern const Categories kLetter, kMark, kNonspacingMark, kNumber, kDecimal, kPunctuation;
extern const Categories kOther;  // control, format, private use; not unassigned code points

bool is_white_space(char32_t c);  // the property White_Space
bool is_alphabetic(char32_t c);   // letters, letter numbers, circled letters; without marks
bool is_word(char32_t c);         // \w: alphabetic, marks, decimal digits, connectors, joiners
bool is_ascii_punctuation(char32_t c);

char32_t to_lower(char32_t c);
char32_t to_upper(char32_t c);

// All code points that equal `c` if case is ignored, `c` among them. Two for most letters; "k" has
// three with the Kelvin sign.
std::span<const char32_t> case_variants(char32_t c, char32_t (&room)[8]);

}  // namespace weft::text
