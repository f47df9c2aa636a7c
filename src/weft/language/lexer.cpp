#include "weft/language/lexer.h"

#include <array>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace weft::language {
namespace {

constexpr auto kSigns = std::to_array<Sign>({
    {"=>", TokenKind::arrow},
    {"<>", TokenKind::not_equal},
    {"!=", TokenKind::not_equal},
    {"<=", TokenKind::less_equal},
    {">=", TokenKind::greater_equal},
    {"(", TokenKind::left_paren},
    {")", TokenKind::right_paren},
    {"[", TokenKind::left_bracket},
    {"]", TokenKind::right_bracket},
    {",", TokenKind::comma},
    {";", TokenKind::semicolon},
    {"+", TokenKind::plus},
    {"-", TokenKind::minus},
    {"*", TokenKind::star},
    {"/", TokenKind::slash},
    {"%", TokenKind::percent},
    {"=", TokenKind::equal},
    {"<", TokenKind::less},
    {">", TokenKind::greater},
    // Not used by any statement; they are tokens so that the parser can suggest what to write
    // instead.
    {"==", TokenKind::double_equal},
    {".", TokenKind::dot},
});

constexpr auto kQuotes = std::to_array<Quote>({
    {.mark = '\'',
     .kind = TokenKind::string,
     .escape = Escape::doubled,
     .not_closed = "string is not closed",
     .remedy = "close it with '; a quote inside is written ''"},
    {.mark = '"',
     .kind = TokenKind::quoted,
     .escape = Escape::doubled,
     .not_closed = "quoted name is not closed",
     .remedy = "close it with \"; a quote inside is written \"\"",
     .empty = "a name cannot be empty"},
});

// A suggestion for a character that WeftQL does not use.
std::string_view remedy(std::string_view character) {
  static constexpr auto kRemedies = std::to_array<std::pair<std::string_view, std::string_view>>({
      {"^", "a power is written pow(x, 2)"},
      {"!", "negation is written NOT"},
      {"&", "write AND"},
      {"|", "write OR"},
      {"#", "a comment starts with --"},
      {"`", "a name with other characters is written \"in double quotes\""},
      {"\\", "a backslash continues a line and must be the last thing on it"},
      {"{", "write ( and )"},
      {"}", "write ( and )"},
      {"\u2018", "a string is written 'in plain quotes'"},
      {"\u2019", "a string is written 'in plain quotes'"},
      {"\u201C", "a string is written 'in plain quotes'"},
      {"\u201D", "a string is written 'in plain quotes'"},
      {"\u2212", "a minus sign is written -"},
      {"\u2013", "a minus sign is written -"},
      {"\u00D7", "a product is written *"},
      {"\u00B7", "a product is written *"},
      {"\u2264", "write <="},
      {"\u2265", "write >="},
      {"\u2260", "write <>"},
      {"\u221E", "infinity is written inf"},
      {"\u00A0", "it is a no-break space: replace it with a plain one"},
  });
  for (const auto& [found, advice] : kRemedies)
    if (found == character) return advice;
  if (static_cast<unsigned char>(character[0]) >= 0x80)
    return "a name with letters beyond ASCII is written \"in double quotes\"";
  return "remove it; a name with such a letter is written in double quotes";
}

Error stranger(std::string_view character, Span span) {
  if (character[0] > 0 && character[0] < ' ')
    return user_error(fmt::format("unexpected control character: 0x{:02x}", character[0]), {}, span);
  return user_error(fmt::format("unexpected character: {}", character), std::string(remedy(character)), span);
}

}  // namespace

constexpr Lexicon kLexicon = indexed({.signs = kSigns,
                                      .quotes = kQuotes,
                                      .line_comment = "--",
                                      .numbers = Numbers::grouped,
                                      .block_comments = true,
                                      .joined_lines = true,
                                      .checks_utf8 = true,
                                      .stranger = stranger});

}  // namespace weft::language
