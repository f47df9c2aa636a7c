#include "weft/transport/thread_placement.h"

#include <stdlib.h>

#include <array>
#include <chrono>
#include <vector>

#include <gtest/gtest.h>

#include "weft/base/machine.h"

namespace weft::transport {
namespace {

using namespace std::chrono_literals;
using Time = ThreadPlacement::Time;

constexpr Time kStart{1h};
constexpr std::array<std::int32_t, 2> kTwo = {0, 1};

TEST(ThreadPlacement, TheHigherOfTwoOnOneCoreLeavesItAfterAWhile) {
  ThreadPlacement lower(0, 2, 2, 2), higher(1, 2, 2, 2);
  lower.note(1, 0);
  higher.note(0, 0);
  EXPECT_FALSE(lower.should_leave(0, kStart));
  EXPECT_FALSE(higher.should_leave(0, kStart));
  EXPECT_FALSE(lower.should_leave(0, kStart + 400us));
  EXPECT_TRUE(higher.should_leave(0, kStart + 400us));
  EXPECT_EQ(higher.better_core(kTwo), 1);
  // The lower one does what the higher one did not do: it may not know.
  EXPECT_TRUE(lower.should_leave(0, kStart + 700us));
}

TEST(ThreadPlacement, AFairShareIsNoReasonToLeave) {
  ThreadPlacement cores(3, 4, 4, 2);
  cores.note(0, 0);
  cores.note(1, 1);
  EXPECT_FALSE(cores.should_leave(0, kStart));
  EXPECT_FALSE(cores.should_leave(0, kStart + 1s));
  cores.note(2, 0);
  EXPECT_FALSE(cores.should_leave(0, kStart + 1s));
  EXPECT_TRUE(cores.should_leave(0, kStart + 2s));
  EXPECT_EQ(cores.better_core(kTwo), 1);
}

TEST(ThreadPlacement, NobodyGoesWhereThereIsNoRoomOrLeaveToGo) {
  ThreadPlacement cores(1, 3, 3, 2);
  cores.note(0, 0);
  cores.note(2, 0);
  constexpr std::array<std::int32_t, 1> kHere = {0};
  EXPECT_EQ(cores.better_core(kHere), -1);
  EXPECT_EQ(cores.better_core({}), -1);
  EXPECT_EQ(cores.better_core(kTwo), 1);
}

TEST(ThreadPlacement, WhoIsTakenBackStaysLongerEachTime) {
  ThreadPlacement cores(1, 2, 2, 2);
  cores.note(0, 0);
  Time now = kStart;
  const auto until_it_leaves = [&] {
    const Time begin = now;
    while (!cores.should_leave(0, now)) now += 100us;
    return now - begin;
  };
  EXPECT_LT(until_it_leaves(), 1ms);
  const auto second = until_it_leaves(), third = until_it_leaves();
  EXPECT_GE(second, 4ms);
  EXPECT_GE(third, 2 * second - 1ms);
  // A while elsewhere, and all is forgotten.
  now += 1s;
  EXPECT_LT(until_it_leaves(), 1ms);
}

TEST(ThreadPlacement, ACoreThatIsNotKnownIsNotShared) {
  ThreadPlacement cores(1, 2, 2, 2);
  EXPECT_FALSE(cores.should_leave(-1, kStart));
  EXPECT_FALSE(cores.should_leave(-1, kStart + 1s));
}

TEST(ThreadPlacement, MovesTheThreadAndBindsItToNothing) {
  const std::vector<int> allowed = allowed_processors();
  const int here = current_processor();
  ASSERT_GE(here, 0);
  ThreadPlacement placement(1, 2, 2, 2);
  placement.note(0, here);
  EXPECT_FALSE(placement.place_thread(here, kStart));
  // A thread that may run on one core only has nowhere to go.
  EXPECT_EQ(placement.place_thread(here, kStart + 1s), allowed.size() > 1);
  EXPECT_EQ(allowed_processors(), allowed);
}

TEST(ThreadPlacement, TheEnvironmentMustAskForIt) {
  ASSERT_EQ(unsetenv("WEFT_PLACE_THREADS"), 0);
  EXPECT_FALSE(environment_places_threads());
  setenv("WEFT_PLACE_THREADS", "0", 1);
  EXPECT_FALSE(environment_places_threads());
  setenv("WEFT_PLACE_THREADS", "1", 1);
  EXPECT_TRUE(environment_places_threads());
  unsetenv("WEFT_PLACE_THREADS");
}

}  // namespace
}  // namespace weft::transport
