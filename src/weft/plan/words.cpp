#include "weft/plan/words.h"

#include <array>

namespace weft::plan {
namespace {

enum : unsigned char { kOther = 0, kLetter = 1, kDigit = 2 };

constexpr std::array<unsigned char, 256> kClass = [] {
  std::array<unsigned char, 256> classes{};
  for (int c = 'a'; c <= 'z'; ++c) classes[static_cast<std::size_t>(c)] = kLetter;
  for (int c = 'A'; c <= 'Z'; ++c) classes[static_cast<std::size_t>(c)] = kLetter;
  for (int c = '0'; c <= '9'; ++c) classes[static_cast<std::size_t>(c)] = kDigit;
  classes['_'] = kLetter;
  return classes;
}();

}  // namespace

bool is_plain_word(std::string_view text) {
  if (text.empty() || kClass[static_cast<unsigned char>(text[0])] != kLetter) return false;
  for (const char c : text.substr(1))
    if (kClass[static_cast<unsigned char>(c)] == kOther) return false;
  return true;
}

void append_word(std::string& out, std::string_view text) {
  if (is_plain_word(text)) {
    out += text;
    return;
  }
  out += '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
  out += '"';
}

std::string quote_unless_plain(std::string_view text) {
  std::string out;
  append_word(out, text);
  return out;
}

}  // namespace weft::plan
