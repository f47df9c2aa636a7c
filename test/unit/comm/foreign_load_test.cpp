// Whether a core that is yielded goes to somebody who keeps it: what is made of how long yields take.

#include "weft/comm/foreign_load.h"

#include <thread>

#include <gtest/gtest.h>

#include "weft/base/machine.h"

namespace weft::comm {
namespace {

using namespace std::chrono_literals;

const ForeignLoad::Clock::time_point kStart(1h);

TEST(ForeignLoad, ShortYieldsMeanNothing) {
  ForeignLoad watch;
  EXPECT_FALSE(watch.suspects(kStart));
  for (int i = 0; i < 100; ++i) watch.note(kStart + i * 10us, kStart + i * 10us + 1us, true);
  EXPECT_FALSE(watch.suspects(kStart + 1ms));
  EXPECT_FALSE(watch.sleeps());
}

TEST(ForeignLoad, SleepsWhereSomebodyKeepsTheCoreAgainAndAgain) {
  ForeignLoad watch;
  watch.note(kStart, kStart + 3ms, false);
  EXPECT_FALSE(watch.sleeps());
  ASSERT_TRUE(watch.suspects(kStart + 10ms));
  watch.note(kStart + 10ms, kStart + 13ms, true);
  for (std::uint32_t i = 0; i < ForeignLoad::kSleeps; ++i) ASSERT_TRUE(watch.sleeps());
  EXPECT_FALSE(watch.sleeps());
}

TEST(ForeignLoad, OneWhoPassedByIsForgotten) {
  ForeignLoad watch;
  watch.note(kStart, kStart + 3ms, false);
  EXPECT_FALSE(watch.suspects(kStart + 200ms));
}

TEST(ForeignLoad, ACoreThatWasGoneWithNobodyOnItIsNoReasonToSleep) {
  ForeignLoad watch;
  for (int i = 0; i < 10; ++i) watch.note(kStart + i * 10ms, kStart + i * 10ms + 3ms, false);
  EXPECT_TRUE(watch.suspects(kStart + 95ms));
  EXPECT_FALSE(watch.sleeps());
}

TEST(ForeignLoad, WhoSleepsGivesItsCoreAway) {
  const std::int64_t before = context_switches();
  std::this_thread::sleep_for(1ms);
  EXPECT_GT(context_switches(), before);
}

}  // namespace
}  // namespace weft::comm
