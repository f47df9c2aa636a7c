// Ranks measure on real calls whether reading private buffers through the kernel is faster, and
// measure again when times change.
#include "weft/communication/comm/direct/direct_trial.h"

#include <array>
#include <functional>

#include <gtest/gtest.h>

namespace weft::comm {
namespace {

constexpr std::uint32_t kTurn = 5;
constexpr int kTrialCalls = DirectTrial::kWarmUps + 2 * DirectTrial::kTurns * kTurn;

// Makes `calls` calls that take as long as `seconds` says, and returns how many used the kernel.
int make_calls(DirectTrial& trial, SharedWord& answers, int calls,
               const std::function<double(bool kernel)>& seconds) {
  int through_kernel = 0;
  for (int call = 0; call < calls; ++call) {
    const DirectTrial::Plan plan = trial.next(kTurn, answers);
    through_kernel += plan.kernel ? 1 : 0;
    if (plan.is_timed) trial.note(seconds(plan.kernel));
  }
  return through_kernel;
}

std::function<double(bool)> taking(double slots, double kernel) {
  return [=](bool through_kernel) { return through_kernel ? kernel : slots; };
}

TEST(DirectTrial, KeepsTheFaster) {
  for (const bool kernel_is_quicker : {false, true}) {
    DirectTrial trial;
    SharedWord answers = 0;
    const auto seconds = kernel_is_quicker ? taking(2, 1) : taking(1, 2);
    EXPECT_EQ(make_calls(trial, answers, kTrialCalls, seconds), DirectTrial::kTurns * kTurn);
    EXPECT_EQ(make_calls(trial, answers, 1000, seconds), kernel_is_quicker ? 1000 : 0);
  }
}

TEST(DirectTrial, IgnoresSmallGains) {
  DirectTrial trial;
  SharedWord answers = 0;
  make_calls(trial, answers, kTrialCalls, taking(1.02, 1));
  EXPECT_EQ(make_calls(trial, answers, 100, taking(1.02, 1)), 0);
}

// The fastest pair of calls counts, so that disturbances of other calls do not matter.
TEST(DirectTrial, IgnoresDisturbedCalls) {
  DirectTrial trial;
  SharedWord answers = 0;
  int timed = 0;
  make_calls(trial, answers, kTrialCalls, [&](bool kernel) {
    ++timed;
    return (kernel ? 1 : 2) * (timed % 3 == 0 ? 50 : 1);
  });
  EXPECT_EQ(make_calls(trial, answers, 100, taking(2, 1)), 100);
}

// A rank that runs ahead in one call pays for it in the next, so such a pair counts as its mean.
TEST(DirectTrial, AveragesPairsOfCalls) {
  DirectTrial trial;
  SharedWord answers = 0;
  int timed = 0;
  const auto seconds = [&](bool kernel) { return !kernel ? 250.0 : ++timed % 2 == 0 ? 160 : 465; };
  make_calls(trial, answers, kTrialCalls, seconds);
  EXPECT_EQ(make_calls(trial, answers, 100, seconds), 0);
}

TEST(DirectTrial, RetriesOnlyWhenTheTimeHasDoubled) {
  DirectTrial trial;
  SharedWord answers = 0;
  make_calls(trial, answers, kTrialCalls, taking(2, 1));
  make_calls(trial, answers, 1000, taking(2, 1));
  EXPECT_EQ(make_calls(trial, answers, 1000, taking(2, 1.9)), 1000);  // slower, but less than twice as slow
  // Now slots are faster: they are used after one window and one trial.
  make_calls(trial, answers, 2 * DirectTrial::kWindow + kTrialCalls, taking(2, 8));
  EXPECT_EQ(make_calls(trial, answers, 1000, taking(2, 8)), 0);
}

// If both methods become slower, the current one is kept and not tried over and over.
TEST(DirectTrial, RetriesOnceOnABusyMachine) {
  DirectTrial trial;
  SharedWord answers = 0;
  make_calls(trial, answers, kTrialCalls + 200, taking(2, 1));
  int slots = 3000 - make_calls(trial, answers, 3000, taking(20, 10));
  EXPECT_EQ(slots, DirectTrial::kTurns * kTurn);
}

// Disturbed calls are not recorded: a trial without times is repeated later.
TEST(DirectTrial, DecidesNothingWithoutTimes) {
  DirectTrial trial;
  SharedWord answers = 0;
  int timed = 0;
  for (int call = 0; call < kTrialCalls; ++call) timed += trial.next(kTurn, answers).is_timed ? 1 : 0;
  EXPECT_EQ(timed, 2 * DirectTrial::kTurns * (kTurn - 1));
  EXPECT_EQ(make_calls(trial, answers, DirectTrial::kWindow, taking(2, 1)), 0);
  make_calls(trial, answers, kTrialCalls, taking(2, 1));
  EXPECT_EQ(make_calls(trial, answers, 100, taking(2, 1)), 100);
}

// Ranks measure different times and disagree about which is faster, but all make the same choice.
TEST(DirectTrial, AllRanksFollowTheFirst) {
  std::array<DirectTrial, 3> ranks;
  SharedWord answers = 0;
  for (int call = 0; call < 2000; ++call) {
    std::array<DirectTrial::Plan, 3> plans;
    // A different rank is first each time.
    for (std::size_t k = 0; k < 3; ++k) {
      const std::size_t rank = (k + static_cast<std::size_t>(call)) % 3;
      plans[rank] = ranks[rank].next(kTurn, answers);
    }
    for (std::size_t rank = 0; rank < 3; ++rank) {
      EXPECT_EQ(plans[rank].kernel, plans[0].kernel) << "call " << call;
      const bool likes_kernel = (rank + static_cast<std::size_t>(call) / 300) % 2 == 0;
      if (plans[rank].is_timed) ranks[rank].note(plans[rank].kernel == likes_kernel ? 1 : 3);
    }
  }
}

TEST(DirectTrial, TheFirstCallerDecides) {
  SharedWord word = 0;
  EXPECT_EQ(decide_first(word, 1, 5), 5u);
  EXPECT_EQ(decide_first(word, 1, 7), 5u);
  EXPECT_EQ(decide_first(word, 2, 0), 0u);
  EXPECT_EQ(decide_first(word, 2, 3), 0u);
}

}  // namespace
}  // namespace weft::comm
