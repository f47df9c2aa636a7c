// The share of the machine that other processes used, from the kernel's counters.
#include "weft/base/background_load.h"

#include <gtest/gtest.h>

#include <vector>

namespace weft {
namespace {

constexpr std::string_view kStat =
    "cpu  100 0 100 9999 0 0 0 0 0 0\n"
    "cpu0 10 1 20 5000 7 2 3 4 9 9\n"
    "cpu1 100 0 0 5000 0 0 0 0 0 0\n"
    "cpu12 1000 0 0 5000 0 0 0 0 0 0\n"
    "intr 12 cpu0 5\n";

TEST(BackgroundLoad, CountsAllowedProcessors) {
  EXPECT_EQ(ticks_of(kStat, std::vector{0}).busy, 40);  // 10 + 1 + 20 + 2 + 3 + 4: all but idle and iowait
  EXPECT_EQ(ticks_of(kStat, std::vector{1}).busy, 100);
  EXPECT_EQ(ticks_of(kStat, std::vector{0, 1, 12}).busy, 1140);
  EXPECT_EQ(ticks_of(kStat, std::vector{2}).busy, 0);
  EXPECT_EQ(ticks_of(kStat, std::vector{0, 1, 12}).stolen, 4);
  EXPECT_EQ(ticks_of("cpu0", std::vector{0}).busy, 0);
  EXPECT_EQ(ticks_of("", std::vector{0}).busy, 0);
}

TEST(BackgroundLoad, SubtractsOurOwnTime) {
  // Two processors for ten seconds: twelve seconds busy, four of them ours.
  EXPECT_DOUBLE_EQ(background_share({100, 50}, {112, 54}, 10, 2), 0.4);
  EXPECT_EQ(background_share({100, 50}, {104, 54}, 10, 2), 0);
  EXPECT_EQ(background_share({100, 50}, {103, 54}, 10, 2), 0);  // kernel ticks and our own clock may disagree
  EXPECT_EQ(background_share({100, 50}, {200, 50}, 10, 2), 1);
  EXPECT_EQ(background_share({100, 50}, {101, 50}, 0.1, 2), 0);  // too short to measure
}

TEST(BackgroundLoad, IsAFractionOnThisMachine) {
  const BackgroundLoad work;
  EXPECT_GE(work.share(), 0);
  EXPECT_LE(work.share(), 1);
}

}  // namespace
}  // namespace weft
