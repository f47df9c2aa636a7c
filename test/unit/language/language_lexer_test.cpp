#include "weft/language/lexer.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace weft::language {
namespace {

using Kind = TokenKind;

std::vector<Token> tokens(std::string_view text) {
  Lexer lexer(text);
  std::vector<Token> result;
  do result.push_back(lexer.next());
  while (result.back().kind != Kind::end && result.back().kind != Kind::bad);
  return result;
}

std::vector<Kind> kinds(std::string_view text) {
  std::vector<Kind> result;
  for (const Token& token : tokens(text)) result.push_back(token.kind);
  return result;
}

// The message of the first bad token, and its location.
std::string complaint(std::string_view text) {
  Lexer lexer(text);
  Token token;
  do token = lexer.next();
  while (token.kind != Kind::end && token.kind != Kind::bad);
  if (token.kind == Kind::end) return "";
  const Error& error = lexer.error();
  return std::to_string(error.span.offset) + "+" + std::to_string(error.span.length) + " " + error.message;
}

TEST(Lexer, ReportsTheLocationOfEachToken) {
  const auto found = tokens("a1 <= 'it''s'");
  ASSERT_EQ(found.size(), 4u);
  EXPECT_EQ(found[0].span, (Span{0, 2}));
  EXPECT_EQ(found[1].span, (Span{3, 2}));
  EXPECT_EQ(found[2].span, (Span{6, 7}));
  EXPECT_TRUE(found[2].escaped);
  EXPECT_EQ(found[3].span, (Span{13, 0}));
}

TEST(Lexer, RecognizesEveryPunctuationMark) {
  using enum TokenKind;
  EXPECT_EQ(kinds("( ) [ ] , ; + - * / % = <> != < <= > >= => == ."),
            (std::vector{left_paren, right_paren, left_bracket, right_bracket, comma, semicolon,    plus,
                         minus,      star,        slash,        percent,       equal, not_equal,    not_equal,
                         less,       less_equal,  greater,      greater_equal, arrow, double_equal, dot,
                         end}));
}

TEST(Lexer, FindsKeywordsInAnyCase) {
  for (const std::string_view word : kSpellings) {
    if (word.empty()) continue;
    std::string lower;
    for (const char c : word) lower += static_cast<char>(c | 0x20);
    EXPECT_EQ(spelling(find_keyword(word)), word);
    EXPECT_EQ(spelling(find_keyword(lower)), word);
    // Within a text, the lookup reads ahead; what follows must not matter.
    const auto found = tokens(lower + " xxxxxxxxxxxxxxxxxxxxxxxx");
    EXPECT_EQ(spelling(found[0].keyword), word);
    EXPECT_EQ(tokens(lower + "x xxxxxxxxxxxxxxxxxxxxxxx")[0].keyword, Keyword::none);
  }
}

TEST(Lexer, TreatsOtherWordsAsNames) {
  for (const char* word : {"x", "selec", "selects", "fro\x6d_", "a_name_longer_than_any_keyword", "_", "A1"})
    EXPECT_EQ(tokens(word)[0].keyword, Keyword::none) << word;
}

TEST(Lexer, SkipsWhitespaceAndComments) {
  EXPECT_EQ(tokens("\t-- a comment\n/* one /* in */ another */x").at(0).span, (Span{40, 1}));
  EXPECT_EQ(kinds("-- at the end"), std::vector{Kind::end});
  EXPECT_EQ(kinds("a\\\nb"), (std::vector{Kind::word, Kind::word, Kind::end}));
  EXPECT_EQ(kinds("a \\\r\n b"), (std::vector{Kind::word, Kind::word, Kind::end}));
  EXPECT_EQ(kinds("a-b"), (std::vector{Kind::word, Kind::minus, Kind::word, Kind::end}));
  EXPECT_EQ(kinds("/"), (std::vector{Kind::slash, Kind::end}));
}

TEST(Lexer, SkipsAByteOrderMark) { EXPECT_EQ(tokens("\xEF\xBB\xBFx").at(0).span, (Span{3, 1})); }

TEST(Lexer, ReadsNumbers) {
  for (const char* text : {"0", "12", "1_000_000", "0.02", "1e5", "1E-5", "2.5e+10", "1_0.0_1"}) {
    const auto found = tokens(text);
    ASSERT_EQ(found.size(), 2u) << text;
    EXPECT_EQ(found[0].kind, Kind::number) << text;
  }
  EXPECT_TRUE(tokens("12")[0].whole);
  EXPECT_FALSE(tokens("1e2")[0].whole);
  EXPECT_FALSE(tokens("1.0")[0].whole);
}

TEST(Lexer, LeavesUnitsToTheParser) {
  EXPECT_EQ(kinds("40GiB"), (std::vector{Kind::number, Kind::word, Kind::end}));
  EXPECT_EQ(kinds("1EB/s"), (std::vector{Kind::number, Kind::word, Kind::slash, Kind::word, Kind::end}));
}

TEST(Lexer, RejectsMalformedNumbers) {
  EXPECT_EQ(complaint("1__0"), "0+4 malformed number: 1__0");
  EXPECT_EQ(complaint("1_"), "0+2 malformed number: 1_");
  EXPECT_EQ(complaint("1."), "0+2 malformed number: 1.");
  EXPECT_EQ(complaint("1.2.3"), "0+5 malformed number: 1.2.3");
  EXPECT_EQ(complaint("a .5"), "2+2 a number starts with a digit");
}

TEST(Lexer, PointsAtTheStartOfUnclosedTokens) {
  EXPECT_EQ(complaint("x 'abc"), "2+1 string is not closed");
  EXPECT_EQ(complaint("x \"abc"), "2+1 quoted name is not closed");
  EXPECT_EQ(complaint("x /* /* */"), "2+2 comment is not closed");
  EXPECT_EQ(complaint("x 'abc''"), "2+1 string is not closed");
  EXPECT_EQ(complaint("\"\""), "0+2 a name cannot be empty");
}

TEST(Lexer, RejectsStrangeCharacters) {
  EXPECT_EQ(complaint("a @"), "2+1 unexpected character: @");
  EXPECT_EQ(complaint("é"), "0+2 unexpected character: é");
  EXPECT_EQ(complaint("\x01"), "0+1 unexpected control character: 0x01");
  EXPECT_EQ(complaint("a \\ b"), "2+1 unexpected character: \\");
  using namespace std::string_view_literals;
  EXPECT_EQ(complaint("a\0b"sv), "1+1 unexpected NUL byte at offset 1");
  EXPECT_EQ(complaint("'a\0b'"sv), "2+1 unexpected NUL byte at offset 2");
  EXPECT_EQ(complaint("-- \0"sv), "3+1 unexpected NUL byte at offset 3");
}

TEST(Lexer, AcceptsUtf8InStringsNamesAndComments) {
  EXPECT_EQ(kinds("'é' \"日本\" /* 🙂 */ -- ß"), (std::vector{Kind::string, Kind::quoted, Kind::end}));
}

TEST(Lexer, RejectsInvalidUtf8) {
  // A stray continuation byte, an overlong slash, a surrogate, above U+10FFFF, a truncated
  // character.
  for (const char* bytes : {"\x80", "\xC0\xAF", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xE2\x82", "\xFF"}) {
    EXPECT_NE(complaint(std::string("'") + bytes + "'").find("1+1 invalid UTF-8"), std::string::npos);
    EXPECT_NE(complaint(std::string("/*") + bytes + "*/").find("2+1 invalid UTF-8"), std::string::npos);
    EXPECT_NE(complaint(std::string("--") + bytes).find("2+1 invalid UTF-8"), std::string::npos);
    EXPECT_NE(complaint(bytes).find("0+1 invalid UTF-8"), std::string::npos);
  }
}

TEST(Lexer, ContinuesAfterABadToken) {
  Lexer lexer("@ ;");
  EXPECT_EQ(lexer.next().kind, Kind::bad);
  EXPECT_FALSE(lexer.unfinished());
  EXPECT_EQ(lexer.next().kind, Kind::semicolon);
  EXPECT_EQ(lexer.next().kind, Kind::end);
  EXPECT_EQ(lexer.next().kind, Kind::end);
}

}  // namespace
}  // namespace weft::language
