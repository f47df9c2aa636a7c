// GENERATE's sampling, and text that ends at a stop text or within a character.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "weft/app/session/generated_text.h"
#include "weft/app/session/next_token.h"

namespace weft::session {
namespace {

// The tokens drawn over a grid of chances.
std::set<std::int32_t> drawn(const Sampling& sampling) {
  const std::vector<double> logits = {1, 3, 2, -5};  // probabilities .09, .67, .24, .00
  std::set<std::int32_t> tokens;
  for (int i = 0; i < 10'000; ++i) tokens.insert(draw_token(logits, sampling, i / 10'000.0));
  return tokens;
}

TEST(NextToken, DrawsFromTheMostLikelyTokens) {
  using Set = std::set<std::int32_t>;
  EXPECT_EQ(drawn({}), (Set{1}));
  EXPECT_EQ(drawn({.temperature = 1}), (Set{0, 1, 2, 3}));
  EXPECT_EQ(drawn({.temperature = 1, .top_k = 2}), (Set{1, 2}));
  EXPECT_EQ(drawn({.temperature = 1, .top_k = 9}), (Set{0, 1, 2, 3}));
  EXPECT_EQ(drawn({.temperature = 1, .top_p = 0.6}), (Set{1}));
  EXPECT_EQ(drawn({.temperature = 1, .top_p = 0.9}), (Set{1, 2}));
  EXPECT_EQ(drawn({.temperature = 1, .top_k = 3, .top_p = 0.95}), (Set{0, 1, 2}));
}

TEST(NextToken, KeepsTheOrderOfTokensWithoutLimits) {
  const std::vector<double> logits = {0, 0, 0, 0};
  EXPECT_EQ(draw_token(logits, {.temperature = 1}, 0.3), 1);
  EXPECT_EQ(draw_token(logits, {}, 0.9), 0);
}

// The parts passed on, joined by "|", then the text.
std::string grow(std::string stop, const std::vector<std::string>& parts) {
  std::string passed;
  GeneratedText made(std::move(stop), [&](std::string_view part) {
    passed += (passed.empty() ? "" : "|") + std::string(part);
  });
  for (const std::string& part : parts) made.append(part);
  const bool ended = made.ended();
  made.finish();
  return passed + " = " + made.text() + (ended ? " (ended)" : "");
}

TEST(GeneratedText, EndsBeforeTheStopText) {
  EXPECT_EQ(grow("", {"one", " two"}), "one| two = one two");
  EXPECT_EQ(grow("END", {"one E", "N", "X", "EN", "D two"}), "one |ENX = one ENX (ended)");
  EXPECT_EQ(grow("END", {"one EN"}), "one |EN = one EN");
  EXPECT_EQ(grow("END", {"END"}), " =  (ended)");
  EXPECT_EQ(grow("aab", {"a", "a", "a", "b"}), "a = a (ended)");
}

TEST(GeneratedText, PassesOnWholeCharacters) {
  EXPECT_EQ(grow("", {"caf\xC3", "\xA9!"}), "caf|\u00e9! = caf\u00e9!");
  EXPECT_EQ(grow("", {"\x1B[2J"}), "\\x1b[2J = \x1B[2J");
}

}  // namespace
}  // namespace weft::session
