// Errors of ranks that run different statements or settings.
#include "weft/runtime/run/rank_comparison.h"

#include <gtest/gtest.h>

namespace weft::run {
namespace {

RankMessage word(std::string data, std::string settings = "b = 32") {
  return {"TRAIN m", std::nullopt, {{"settings", std::move(settings), true, "h"}, {"data", std::move(data)}}};
}

TEST(RankComparison, NamesRanksThatDiffer) {
  const Status same = compare_messages({word("a"), word("a"), word("a")}, 1);
  EXPECT_TRUE(same.ok());
  const std::vector<RankMessage> words = {word("a"), word("a"), word("b"), word("a")};
  for (const std::int32_t rank : {0, 2}) {
    const Status other = compare_messages(words, rank);
    ASSERT_FALSE(other.ok());
    EXPECT_EQ(other.error().message, "rank 2 has other data than rank 0, rank 1 and rank 3");
    EXPECT_EQ(other.error().fault, Fault::world);
  }
  // Of two that differ, the first is taken as right; readable differences are printed.
  EXPECT_EQ(compare_messages({word("a"), word("a", "b = 64")}, 0).error().message,
            "rank 1 has other settings than rank 0: 'b = 64', not 'b = 32'");
  EXPECT_EQ(compare_messages({word("a"), word("b"), word("b")}, 0).error().message,
            "rank 0 has other data than rank 1 and rank 2");
}

TEST(RankComparison, ReportsErrorsBeforeDifferences) {
  std::vector<RankMessage> words = {word("a"), word("b"), word("a")};
  words[2].error = environment_error("no file", "make one");
  EXPECT_EQ(compare_messages(words, 2).error().message, "no file");
  EXPECT_EQ(compare_messages(words, 0).error().message, "rank 2: no file");
  EXPECT_EQ(compare_messages(words, 0).error().hint, "make one");
  words[0].error = words[2].error;
  EXPECT_EQ(compare_messages(words, 1).error().message, "rank 0 and rank 2: no file");
}

TEST(RankComparison, ReportsADifferentStatement) {
  std::vector<RankMessage> words = {word("a"), word("a")};
  words[1].at = "SAVE m";
  EXPECT_EQ(compare_messages(words, 0).error().message,
            "rank 1 runs another statement than rank 0: SAVE m, not TRAIN m");
}

TEST(RankComparison, ComparesNothingWithoutALauncher) {
  RankComparison alone("TRAIN m");
  EXPECT_FALSE(alone.compares());
  EXPECT_TRUE(alone.end({}).ok());
  EXPECT_EQ(RankComparison("TRAIN m").end(user_error("no")).error().message, "no");
}

}  // namespace
}  // namespace weft::run
