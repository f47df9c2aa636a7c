#include "weft/base/lexer.h"

#include <limits>
#include <string>

#include <gtest/gtest.h>

#include "weft/base/scanner.h"
#include "weft/base/token_reader.h"

namespace weft {
namespace {

constexpr Sign kSigns[] = {{"<=", TokenKind::less_equal}, {"..", TokenKind::range},
                           {"<", TokenKind::less},        {".", TokenKind::dot},
                           {"-", TokenKind::minus},       {"(", TokenKind::left_paren}};
constexpr Quote kQuotes[] = {
    {.mark = '\'', .in_one_line = true, .not_closed = "open", .remedy = "close it"},
    {.mark = '"', .kind = TokenKind::quoted, .escape = Escape::backslash},
};

Error stranger(std::string_view character, Span span) {
  return user_error("strange: " + std::string(character), {}, span);
}

constexpr Lexicon kWhole =
    indexed({.signs = kSigns, .quotes = kQuotes, .line_comment = "#", .stranger = stranger});
constexpr Lexicon kReal = indexed({.signs = kSigns, .numbers = Numbers::real, .stranger = stranger});
constexpr Lexicon kWide =
    indexed({.signs = kSigns, .quotes = kQuotes, .numbers = Numbers::none, .wide_words = true});

// Token spellings separated by bars. An error ends the list.
std::string cut(const Lexicon& lexicon, std::string_view text) {
  Lexer lexer(lexicon, text);
  std::string result;
  for (;;) {
    const Token token = lexer.next();
    if (token.kind == TokenKind::end) return result;
    if (token.kind == TokenKind::bad)
      return result + "!" + std::to_string(lexer.error().span.offset) + " " + lexer.error().message;
    result += std::string(text.substr(token.span.offset, token.span.length)) + "|";
  }
}

TEST(BaseLexer, MatchesTheLongestSign) {
  EXPECT_EQ(cut(kWhole, "a<=b<c..d.e"), "a|<=|b|<|c|..|d|.|e|");
  EXPECT_EQ(cut(kWhole, "a ; b"), "a|!2 strange: ;");
}

TEST(BaseLexer, ReadsNumbersInTheLexiconsForm) {
  EXPECT_EQ(cut(kWhole, "12.5 1e3"), "12|.|5|1|e3|");
  EXPECT_EQ(cut(kReal, "12.5 1e3 1e-3 2.x 7e"), "12.5|1e3|1e-3|2|.|x|7|e|");
  EXPECT_EQ(cut(kWide, "3d 12.5"), "3d|12|.|5|");
}

TEST(BaseLexer, AcceptsWideWordsIfTheLexiconDoes) {
  EXPECT_EQ(cut(kWide, "a/b$ # \xc3\xa9 <c"), "a/b$|#|\xc3\xa9|<|c|");
}

TEST(BaseLexer, SkipsCommentsToTheEndOfTheLine) {
  EXPECT_EQ(cut(kWhole, "a # b ' c\nd"), "a|d|");
  EXPECT_EQ(cut(kWhole, "a#"), "a|");
}

TEST(BaseLexer, ReadsQuotedStrings) {
  EXPECT_EQ(cut(kWhole, "'a b' 'c"), "'a b'|!6 open");
  EXPECT_EQ(cut(kWhole, "'a\n'"), "!0 open");
  EXPECT_EQ(cut(kWhole, R"("say \"d\"" e)"), R"("say \"d\""|e|)");
  EXPECT_EQ(unquoted(kWhole, R"("say \"d\"\n\\")"), "say \"d\"\n\\");
  EXPECT_EQ(unquoted(kWhole, "'a b'"), "a b");
}

TEST(TokenReader, KeepsTheFirstError) {
  TokenReader reader(kWhole, "block (\n");
  EXPECT_TRUE(reader.take_word("block"));
  EXPECT_FALSE(reader.at_word("("));
  EXPECT_EQ(reader.number("a number"), 0);
  EXPECT_EQ(reader.error().message, "expected a number, found '('");
  EXPECT_EQ(reader.error().span, (Span{6, 1}));
  EXPECT_TRUE(reader.at_end());
  reader.expect(TokenKind::left_paren);
  EXPECT_EQ(reader.error().message, "expected a number, found '('");
}

// A token missing at the end of the text is reported right after the last token, not after trailing
// blanks or comments.
TEST(TokenReader, PointsAfterTheLastToken) {
  TokenReader reader(kWhole, "a <  # nothing\n\n");
  reader.advance();
  reader.advance();
  reader.expect(TokenKind::less);
  EXPECT_EQ(reader.error().message, "expected '<', found the end of the text");
  EXPECT_EQ(reader.error().span, (Span{3, 1}));
}

TEST(TokenReader, LookaheadDoesNotFail) {
  TokenReader reader(kWhole, "a ;");
  EXPECT_EQ(reader.after().kind, TokenKind::bad);
  EXPECT_FALSE(reader.failed());
  reader.advance();
  EXPECT_EQ(reader.error().message, "strange: ;");
}

TEST(TokenReader, ReadsTheRestOfALine) {
  TokenReader reader(kWhole, "why  two (words; # all of it \nb");
  EXPECT_EQ(reader.line(), "two (words; # all of it");
  EXPECT_TRUE(reader.at_word("b"));
}

TEST(TokenReader, ChecksTheRangeOfNumbers) {
  TokenReader reader(kWhole, "-9223372036854775808 9223372036854775807 3000000000");
  EXPECT_EQ(reader.wide_number("n"), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(reader.number("n"), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(reader.small_number("n"), 0);
  EXPECT_EQ(reader.error().message, "number is too large: 3000000000");
  TokenReader large(kWhole, "9223372036854775808");
  large.number("n");
  EXPECT_TRUE(large.failed());
}

TEST(Scanner, ReadsNulPastTheEnd) {
  Scanner scanner("%1");
  EXPECT_TRUE(scanner.take('%'));
  scanner.skip_while(is_digit);
  EXPECT_EQ(scanner.text_since(1), "1");
  EXPECT_EQ(scanner.here(), '\0');
  EXPECT_EQ(scanner.ahead(5), '\0');
  EXPECT_FALSE(scanner.take('\0'));
}

}  // namespace
}  // namespace weft
