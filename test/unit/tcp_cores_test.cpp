#include "weft/transport/tcp/cores.h"

#include <array>
#include <chrono>

#include <gtest/gtest.h>

namespace weft::transport::tcp {
namespace {

using namespace std::chrono_literals;
using Time = Cores::Time;

constexpr Time kStart{1h};
constexpr std::array<std::int32_t, 2> kTwo = {0, 1};

TEST(TcpCores, TheHigherOfTwoOnOneCoreLeavesItAfterAWhile) {
  Cores lower(0, 2, 2, 2), higher(1, 2, 2, 2);
  lower.tell(1, 0);
  higher.tell(0, 0);
  EXPECT_FALSE(lower.should_leave(0, kStart));
  EXPECT_FALSE(higher.should_leave(0, kStart));
  EXPECT_FALSE(lower.should_leave(0, kStart + 400us));
  EXPECT_TRUE(higher.should_leave(0, kStart + 400us));
  EXPECT_EQ(higher.better_core(kTwo), 1);
  // The lower one does what the higher one did not do: it may not know.
  EXPECT_TRUE(lower.should_leave(0, kStart + 700us));
}

TEST(TcpCores, AFairShareIsNoReasonToLeave) {
  Cores cores(3, 4, 4, 2);
  cores.tell(0, 0);
  cores.tell(1, 1);
  EXPECT_FALSE(cores.should_leave(0, kStart));
  EXPECT_FALSE(cores.should_leave(0, kStart + 1s));
  cores.tell(2, 0);
  EXPECT_FALSE(cores.should_leave(0, kStart + 1s));
  EXPECT_TRUE(cores.should_leave(0, kStart + 2s));
  EXPECT_EQ(cores.better_core(kTwo), 1);
}

TEST(TcpCores, NobodyGoesWhereThereIsNoRoomOrLeaveToGo) {
  Cores cores(1, 3, 3, 2);
  cores.tell(0, 0);
  cores.tell(2, 0);
  constexpr std::array<std::int32_t, 1> kHere = {0};
  EXPECT_EQ(cores.better_core(kHere), -1);
  EXPECT_EQ(cores.better_core({}), -1);
  EXPECT_EQ(cores.better_core(kTwo), 1);
}

TEST(TcpCores, WhoIsTakenBackStaysLongerEachTime) {
  Cores cores(1, 2, 2, 2);
  cores.tell(0, 0);
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

TEST(TcpCores, ACoreThatIsNotKnownIsNotShared) {
  Cores cores(1, 2, 2, 2);
  EXPECT_FALSE(cores.should_leave(-1, kStart));
  EXPECT_FALSE(cores.should_leave(-1, kStart + 1s));
  EXPECT_GE(current_core(), 0);
}

}  // namespace
}  // namespace weft::transport::tcp
