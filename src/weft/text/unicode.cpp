#include "weft/text/unicode.h"

#include <algorithm>
#include <array>
#include <map>
#include <vector>

#include <utf8proc.h>

namespace weft::text {
namespace {

constexpr Categories bit(utf8proc_category_t category) { return Categories{1} << category; }

struct NamedCategories {
  std::string_view name;
  Categories categories;
};

constexpr Categories kLetters = bit(UTF8PROC_CATEGORY_LU) | bit(UTF8PROC_CATEGORY_LL) |
                                bit(UTF8PROC_CATEGORY_LT) | bit(UTF8PROC_CATEGORY_LM) |
                                bit(UTF8PROC_CATEGORY_LO);
constexpr Categories kMarks =
    bit(UTF8PROC_CATEGORY_MN) | bit(UTF8PROC_CATEGORY_MC) | bit(UTF8PROC_CATEGORY_ME);
constexpr Categories kNumbers =
    bit(UTF8PROC_CATEGORY_ND) | bit(UTF8PROC_CATEGORY_NL) | bit(UTF8PROC_CATEGORY_NO);
constexpr Categories kPunctuations = bit(UTF8PROC_CATEGORY_PC) | bit(UTF8PROC_CATEGORY_PD) |
                                     bit(UTF8PROC_CATEGORY_PS) | bit(UTF8PROC_CATEGORY_PE) |
                                     bit(UTF8PROC_CATEGORY_PI) | bit(UTF8PROC_CATEGORY_PF) |
                                     bit(UTF8PROC_CATEGORY_PO);
constexpr Categories kOthers = bit(UTF8PROC_CATEGORY_CC) | bit(UTF8PROC_CATEGORY_CF) |
                               bit(UTF8PROC_CATEGORY_CS) | bit(UTF8PROC_CATEGORY_CO);

constexpr NamedCategories kNames[] = {
    {"L", kLetters},
    {"Lu", bit(UTF8PROC_CATEGORY_LU)},
    {"Ll", bit(UTF8PROC_CATEGORY_LL)},
    {"Lt", bit(UTF8PROC_CATEGORY_LT)},
    {"Lm", bit(UTF8PROC_CATEGORY_LM)},
    {"Lo", bit(UTF8PROC_CATEGORY_LO)},
    {"M", kMarks},
    {"Mn", bit(UTF8PROC_CATEGORY_MN)},
    {"Mc", bit(UTF8PROC_CATEGORY_MC)},
    {"Me", bit(UTF8PROC_CATEGORY_ME)},
    {"N", kNumbers},
    {"Nd", bit(UTF8PROC_CATEGORY_ND)},
    {"Nl", bit(UTF8PROC_CATEGORY_NL)},
    {"No", bit(UTF8PROC_CATEGORY_NO)},
    {"P", kPunctuations},
    {"Pc", bit(UTF8PROC_CATEGORY_PC)},
    {"Pd", bit(UTF8PROC_CATEGORY_PD)},
    {"Ps", bit(UTF8PROC_CATEGORY_PS)},
    {"Pe", bit(UTF8PROC_CATEGORY_PE)},
    {"Pi", bit(UTF8PROC_CATEGORY_PI)},
    {"Pf", bit(UTF8PROC_CATEGORY_PF)},
    {"Po", bit(UTF8PROC_CATEGORY_PO)},
    {"S", bit(UTF8PROC_CATEGORY_SM) | bit(UTF8PROC_CATEGORY_SC) | bit(UTF8PROC_CATEGORY_SK) |
              bit(UTF8PROC_CATEGORY_SO)},
    {"Sm", bit(UTF8PROC_CATEGORY_SM)},
    {"Sc", bit(UTF8PROC_CATEGORY_SC)},
    {"Sk", bit(UTF8PROC_CATEGORY_SK)},
    {"So", bit(UTF8PROC_CATEGORY_SO)},
    {"Z", bit(UTF8PROC_CATEGORY_ZS) | bit(UTF8PROC_CATEGORY_ZL) | bit(UTF8PROC_CATEGORY_ZP)},
    {"Zs", bit(UTF8PROC_CATEGORY_ZS)},
    {"Zl", bit(UTF8PROC_CATEGORY_ZL)},
    {"Zp", bit(UTF8PROC_CATEGORY_ZP)},
    {"C", kOthers | bit(UTF8PROC_CATEGORY_CN)},
    {"Cc", bit(UTF8PROC_CATEGORY_CC)},
    {"Cf", bit(UTF8PROC_CATEGORY_CF)},
    {"Cn", bit(UTF8PROC_CATEGORY_CN)},
    {"Co", bit(UTF8PROC_CATEGORY_CO)},
    {"Cs", bit(UTF8PROC_CATEGORY_CS)},
};

// Case ignored, two code points are the same if these are.
char32_t case_key(char32_t c) { return to_lower(to_upper(c)); }

// The classes of three and more equal code points, such as k, K and the Kelvin sign. Letters with
// case are all below this.
constexpr char32_t kEndOfCase = 0x1E950;

std::map<char32_t, std::vector<char32_t>> large_case_classes() {
  std::map<char32_t, std::vector<char32_t>> classes;
  for (char32_t c = 0; c < kEndOfCase; ++c)
    if (const char32_t key = case_key(c); key != c || to_upper(c) != c) classes[key].push_back(c);
  std::erase_if(classes, [](const auto& entry) { return entry.second.size() < 3; });
  return classes;
}

}  // namespace

const Categories kLetter = kLetters, kMark = kMarks, kNonspacingMark = bit(UTF8PROC_CATEGORY_MN),
                 kNumber = kNumbers, kDecimal = bit(UTF8PROC_CATEGORY_ND), kPunctuation = kPunctuations,
                 kOther = kOthers;

Categories categories_named(std::string_view name) {
  const auto* const at = std::ranges::find(kNames, name, &NamedCategories::name);
  return at == std::end(kNames) ? 0 : at->categories;
}

bool has_category(char32_t c, Categories categories) {
  return (categories >> utf8proc_category(static_cast<utf8proc_int32_t>(c)) & 1u) != 0;
}

bool is_white_space(char32_t c) {
  if (c < 0x80) return c == ' ' || (c >= '\t' && c <= '\r');
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
         c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

bool is_alphabetic(char32_t c) {
  // Symbols with the property Alphabetic: letters in circles and squares.
  const bool circled = (c >= 0x24B6 && c <= 0x24E9) || (c >= 0x1F130 && c <= 0x1F149) ||
                       (c >= 0x1F150 && c <= 0x1F169) || (c >= 0x1F170 && c <= 0x1F189);
  return circled || has_category(c, kLetters | bit(UTF8PROC_CATEGORY_NL));
}

bool is_word(char32_t c) {
  if (c < 0x80) return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
  return is_alphabetic(c) || has_category(c, kMarks | kDecimal | bit(UTF8PROC_CATEGORY_PC)) || c == 0x200C ||
         c == 0x200D;
}

bool is_ascii_punctuation(char32_t c) {
  return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
}

char32_t to_lower(char32_t c) {
  if (c < 0x80) return c >= 'A' && c <= 'Z' ? c + 32 : c;
  return static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c)));
}

char32_t to_upper(char32_t c) {
  if (c < 0x80) return c >= 'a' && c <= 'z' ? c - 32 : c;
  return static_cast<char32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(c)));
}

std::span<const char32_t> case_variants(char32_t c, char32_t (&room)[8]) {
  static const std::map<char32_t, std::vector<char32_t>> large = large_case_classes();
  const char32_t key = case_key(c);
  if (const auto at = large.find(key); at != large.end()) return at->second;
  std::size_t count = 0;
  for (const char32_t variant : {c, key, to_upper(c), to_upper(key)})
    if (std::find(room, room + count, variant) == room + count) room[count++] = variant;
  return {room, count};
}

}  // namespace weft::text
