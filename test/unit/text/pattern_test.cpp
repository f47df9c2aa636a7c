// Regular expressions of tokenizers: what they match, and what is an error.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "weft/text/pattern.h"

namespace weft::text {
namespace {

// The matches, joined by "|", or the error.
std::string matches(std::string_view pattern, std::string_view text) {
  const auto parsed = Pattern::parse(pattern);
  if (!parsed.ok()) return parsed.error().message;
  const auto found = parsed->find_all(text);
  if (!found.ok()) return found.error().message;
  std::string all;
  for (const Match& match : *found)
    all += (all.empty() ? "" : "|") + std::string(text.substr(match.begin, match.end - match.begin));
  return all;
}

TEST(Pattern, AlternativesAreTriedInOrder) {
  EXPECT_EQ(matches("ab|abc|c", "abc"), "ab|c");
  EXPECT_EQ(matches("(ab|a)(c|bcd)?", "abcd"), "abc");
  EXPECT_EQ(matches("(?>a|ab)c", "abc"), "");
}

TEST(Pattern, RepetitionIsGreedyLazyOrPossessive) {
  EXPECT_EQ(matches("a.*b", "aXbXb"), "aXbXb");
  EXPECT_EQ(matches("a.*?b", "aXbXb"), "aXb");
  EXPECT_EQ(matches("a.*+b", "aXbXb"), "");
  EXPECT_EQ(matches(R"(\p{N}{1,3})", "12345"), "123|45");
  EXPECT_EQ(matches(R"(\p{N}{1,3}+)", "12345"), "12345");  // repeated, as in Oniguruma
  EXPECT_EQ(matches("x{2}|x{,1}", "xxx"), "xx|x");
  EXPECT_EQ(matches("(ab){2,}?", "ababab"), "abab");
  EXPECT_EQ(matches("a{", "a{"), "a{");
}

TEST(Pattern, ClassesUseUnicode) {
  EXPECT_EQ(matches(R"(\p{L}+)", "caf\u00e9 \u4e2d\u6587 3"), "caf\u00e9|\u4e2d\u6587");
  EXPECT_EQ(matches(R"([^\s\p{L}\p{N}]+)", "a, b! 1"), ",|!");
  EXPECT_EQ(matches(R"([\p{L}&&[^a-z]]+)", "abCDe\u00c9"), "CD|\u00c9");
  EXPECT_EQ(matches(R"([^\P{L}a-z]+)", "abCDe"), "CD");
  EXPECT_EQ(matches(R"(\x{4e2d}|\u00e9|\x20)", "\u4e2d\u00e9 "), "\u4e2d|\u00e9| ");
  EXPECT_EQ(matches(R"([a\-z]+)", "a-z b"), "a-z");
  EXPECT_EQ(matches(R"(\s+)", "a\u3000\u00a0b"), "\u3000\u00a0");
}

TEST(Pattern, IgnoresCaseOverAllOfUnicode) {
  EXPECT_EQ(matches("(?i:'s)", "'s 'S '\u017f"), "'s|'S|'\u017f");
  EXPECT_EQ(matches("(?i)k|x", "kK\u212aX"), "k|K|\u212a|X");
  EXPECT_EQ(matches("(?i:[a-c])d", "Bd BD"), "Bd");
}

TEST(Pattern, LooksAheadAndBack) {
  EXPECT_EQ(matches(R"(\s+(?!\S)|\s+)", "a   b"), "  | ");
  EXPECT_EQ(matches(R"(\p{L}+(?=\d))", "ab1 cd"), "ab");
  EXPECT_EQ(matches(R"((?<=a)b|(?<!a)c)", "abac c"), "b|c");
  EXPECT_EQ(matches(R"(^\w+$)", "ab\ncd\n"), "ab|cd");
}

TEST(Pattern, EmptyMatchesDivideTheText) {
  const auto parsed = Pattern::parse("x*");
  const auto found = parsed->find_all("axb");
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(*found, (std::vector<Match>{{0, 0}, {1, 2}, {3, 3}}));
}

TEST(Pattern, NamesWhatIsNotSupported) {
  EXPECT_EQ(matches(R"((a)\1)", "aa"), R"(\1 is not supported at character 5 of the pattern '(a)\1')");
  EXPECT_EQ(matches("(?<n>a)", "a"),
            "the group (?< is not supported at character 2 of the pattern '(?<n>a)'");
  EXPECT_EQ(
      matches("(?<=ab)c", "a"),
      "look-behind of more than one character is not supported at character 2 of the pattern '(?<=ab)c'");
  EXPECT_EQ(matches(R"(\p{Klingon})", "a"),
            R"(unknown property \p{Klingon} at character 4 of the pattern '\p{Klingon}')");
  EXPECT_EQ(matches("a(b", "a"), "expected ) at the end of a group at character 4 of the pattern 'a(b'");
  EXPECT_EQ(matches("[a", "a"), "expected ] at the end of a class at character 3 of the pattern '[a'");
  EXPECT_EQ(matches("*a", "a"), "expected something before * at character 1 of the pattern '*a'");
  EXPECT_EQ(
      matches("(a*)*", "a"),
      "a repeated group that can match the empty string is not supported in the pattern of a tokenizer");
}

TEST(Pattern, FailsInsteadOfBacktrackingForever) {
  EXPECT_EQ(matches("(a+)+(a+)+b", std::string(50, 'a')),
            "the pattern of a tokenizer backtracks too much on this text");
}

}  // namespace
}  // namespace weft::text
