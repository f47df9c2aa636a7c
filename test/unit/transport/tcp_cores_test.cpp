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

// What a rank says that is on this core and knows of nobody.
std::uint32_t at(std::int32_t core) { return Cores(0, 1, 1, 1).tell(core); }

TEST(TcpCores, RanksHearOfThoseThatOnlyOthersHear) {
  Cores first(0, 4, 4, 2), second(1, 4, 4, 2), third(2, 4, 4, 2), fourth(3, 4, 4, 2);
  const auto pass_on = [&] {  // 0 -> 1 -> 2 -> 3, often enough for all that there is to tell
    for (int i = 0; i < 4; ++i) {
      second.hear(0, first.tell(0));
      third.hear(1, second.tell(1));
      fourth.hear(2, third.tell(0));
    }
  };
  pass_on();
  // Ranks 0 and 2 are on core 0, so that a third is one too many there, and rank 1 is alone on core 1.
  EXPECT_FALSE(fourth.look().should_leave(0, kStart));
  EXPECT_TRUE(fourth.look().should_leave(0, kStart + 1s));
  EXPECT_EQ(fourth.look().better_core(kTwo), 1);
  // What was heard from a rank itself is not changed by what others say.
  fourth.hear(0, at(1));
  pass_on();
  EXPECT_FALSE(fourth.look().should_leave(0, kStart + 2s));
  // Of ranks that are not heard of any more nothing is known after a while.
  for (int i = 0; i < 1000; ++i) fourth.look().should_leave(1, kStart + 3s);
  EXPECT_FALSE(fourth.look().should_leave(1, kStart + 4s));
  EXPECT_FALSE(fourth.look().should_leave(0, kStart + 5s));
}

TEST(TcpCores, GarbageDoesNoHarm) {
  Cores cores(0, 2, 2, 2);
  for (const std::uint32_t word : {0U, ~0U, 1023U << 10, 1023U << 10 | 1U << 20, 5U << 20})
    cores.hear(1, word);
  EXPECT_FALSE(cores.look().should_leave(0, kStart));
  EXPECT_EQ(Cores(0, 2, 2, 2).tell(-1), 0U);
  EXPECT_EQ(Cores(0, 2, 2, 2).tell(5000), 0U);
}

}  // namespace
}  // namespace weft::transport::tcp
