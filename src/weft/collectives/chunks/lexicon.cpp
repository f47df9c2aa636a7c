#include "weft/collectives/chunks/lexicon.h"

#include <array>

#include <fmt/format.h>

#include "weft/base/letters.h"

namespace weft::collective {
namespace {

constexpr auto kSigns = std::to_array<Sign>({
    {":=", TokenKind::assign},     {"..", TokenKind::range},         {"=>", TokenKind::arrow},
    {"->", TokenKind::thin_arrow}, {"<>", TokenKind::not_equal},     {"!=", TokenKind::not_equal},
    {"<=", TokenKind::less_equal}, {">=", TokenKind::greater_equal}, {"(", TokenKind::left_paren},
    {")", TokenKind::right_paren}, {"[", TokenKind::left_bracket},   {"]", TokenKind::right_bracket},
    {",", TokenKind::comma},       {":", TokenKind::colon},          {".", TokenKind::dot},
    {"+", TokenKind::plus},        {"-", TokenKind::minus},          {"*", TokenKind::star},
    {"/", TokenKind::slash},       {"=", TokenKind::equal},          {"<", TokenKind::less},
    {">", TokenKind::greater},
});

constexpr auto kQuotes = std::to_array<Quote>({
    {.escape = Escape::doubled, .remedy = "close it with '; a quote inside is written ''"},
});

std::string_view remedy(char c) {
  switch (c) {
    case '%': return "a remainder is written a MOD b";
    case '^': return "write xor(a, b), or pow2(n) for a power of two";
    case '&': return "write AND, or bit_and(a, b)";
    case '|': return "write OR, or bit_or(a, b)";
    case '!': return "write NOT";
    case '"': return "write 'single quotes'";
    case '#': return "a comment starts with --";
    case ';': return "statements need no separator";
    default: return {};
  }
}

Error stranger(std::string_view character, Span span) {
  const char c = character[0];
  const bool visible = c > ' ' && c < 0x7F;
  return user_error(visible ? fmt::format("unexpected character: {}", c)
                            : fmt::format("unexpected byte: 0x{:02x}", static_cast<unsigned char>(c)),
                    std::string(remedy(c)), span);
}

}  // namespace

constexpr Lexicon kLexicon = indexed({.signs = kSigns,
                                      .quotes = kQuotes,
                                      .line_comment = "--",
                                      .words_have_case = false,
                                      .stranger = stranger});

std::string quote(std::string_view text) {
  std::string result = "'";
  for (const char c : text) {
    result += c;
    if (c == '\'') result += c;
  }
  return result + "'";
}

std::string print_name(std::string_view name) {
  return is_plain_word(name) ? std::string(name) : quote(name);
}

}  // namespace weft::collective
