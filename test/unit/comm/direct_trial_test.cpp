// Which way of copying is quickest: what a trial makes of the times it is told.

#include "weft/comm/direct/direct_trial.h"

#include <gtest/gtest.h>

namespace weft::comm {
namespace {

constexpr std::array<CopyMode, kCopyModes> kModes = {CopyMode::slots, CopyMode::kernel,
                                                     CopyMode::kernel_one_shot, CopyMode::non_temporal};

// Makes so many calls whose modes take `seconds`; answers the usual one in the end.
CopyMode make_calls(DirectTrial& trial, std::span<const CopyMode> modes, SharedWord& verdict, int calls,
                    std::array<double, kCopyModes> seconds) {
  CopyMode usual = CopyMode::slots;
  for (int call = 0; call < calls; ++call) {
    const DirectTrial::Plan plan = trial.next(modes, {4}, verdict);
    if (plan.is_trial)
      trial.note(plan.mode, seconds[static_cast<std::size_t>(plan.mode)]);
    else
      usual = plan.mode;
  }
  return usual;
}

TEST(DirectTrial, KeepsTheQuickestOfAllModes) {
  for (std::size_t quickest = 0; quickest < kCopyModes; ++quickest) {
    std::array<double, kCopyModes> seconds = {2, 2, 2, 2};
    seconds[quickest] = 1;
    DirectTrial trial;
    SharedWord verdict{0};
    EXPECT_EQ(make_calls(trial, kModes, verdict, 80, seconds), kModes[quickest]);
  }
}

TEST(DirectTrial, TriesOnlyTheModesThereAre) {
  DirectTrial trial;
  SharedWord verdict{0};
  EXPECT_EQ(make_calls(trial, std::span(kModes).first(2), verdict, 80, {3, 2, 1, 1}), CopyMode::kernel);
}

TEST(DirectTrial, ASlowCallInAQuickModeDoesNotCount) {
  DirectTrial trial;
  SharedWord verdict{0};
  CopyMode usual = CopyMode::slots;
  for (int call = 0; call < 80; ++call) {
    const DirectTrial::Plan plan = trial.next(kModes, {5}, verdict);
    if (!plan.is_trial) usual = plan.mode;
    if (plan.is_trial) trial.note(plan.mode, plan.mode == CopyMode::kernel ? (call % 5 == 4 ? 50 : 1) : 2);
  }
  EXPECT_EQ(usual, CopyMode::kernel);
}

// Every other call is quick because it leaves its work to the next; so much so that the mean alone tells.
TEST(DirectTrial, WhatIsQuickAtTheNextOnesCostIsNot) {
  DirectTrial trial;
  SharedWord verdict{0};
  CopyMode usual = CopyMode::slots;
  for (int call = 0; call < 80; ++call) {
    const DirectTrial::Plan plan = trial.next(kModes, {4}, verdict);
    if (!plan.is_trial) usual = plan.mode;
    if (plan.is_trial) trial.note(plan.mode, plan.mode == CopyMode::kernel ? 1.9 : call % 2 == 0 ? 1 : 3);
  }
  EXPECT_EQ(usual, CopyMode::kernel);
}

// One lucky pair says little where ranks share cores.
TEST(DirectTrial, OversubscribedLuckDoesNotCount) {
  for (const bool oversubscribed : {false, true}) {
    DirectTrial trial;
    SharedWord verdict{0};
    CopyMode usual = CopyMode::slots;
    for (int call = 0; call < 100; ++call) {
      const DirectTrial::Plan plan = trial.next(std::span(kModes).first(2), {9, oversubscribed}, verdict);
      if (!plan.is_trial) usual = plan.mode;
      const double slots = call % 9 == 4 || call % 9 == 5 ? 1 : 3;
      if (plan.is_trial) trial.note(plan.mode, plan.mode == CopyMode::kernel ? 2 : slots);
    }
    EXPECT_EQ(usual, oversubscribed ? CopyMode::kernel : CopyMode::slots);
  }
}

TEST(DirectTrial, BeginsWithAGuess) {
  DirectTrial trial;
  SharedWord verdict{0};
  EXPECT_EQ(trial.next(kModes, {2}, verdict, CopyMode::non_temporal).mode, CopyMode::non_temporal);
}

TEST(DirectTrial, ALittleIsNoReasonToChange) {
  DirectTrial trial;
  SharedWord verdict{0};
  EXPECT_EQ(make_calls(trial, kModes, verdict, 80, {1.02, 1, 2, 2}), CopyMode::slots);
}

TEST(DirectTrial, TriesAgainAfterAWhile) {
  DirectTrial trial;
  SharedWord verdict{0};
  ASSERT_EQ(make_calls(trial, kModes, verdict, 80, {1, 2, 3, 4}), CopyMode::slots);
  EXPECT_EQ(make_calls(trial, kModes, verdict, DirectTrial::kMostBetween + 100, {3, 2, 1, 4}),
            CopyMode::kernel_one_shot);
}

// Ranks whose times say otherwise do what the first to come found: all must do the same.
TEST(DirectTrial, AllRanksDoWhatTheFirstSays) {
  std::array<DirectTrial, 3> ranks;
  SharedWord verdict{0};
  const std::array<std::array<double, kCopyModes>, 3> seconds = {
      {{3, 1, 2, 1.1}, {1, 2, 3, 1.2}, {2, 3, 1, 1}}};
  for (int call = 0; call < 2500; ++call) {
    std::array<DirectTrial::Plan, 3> plans;
    for (std::size_t turn = 0; turn < 3; ++turn) {
      const std::size_t rank = (turn + static_cast<std::size_t>(call)) % 3;
      plans[rank] = ranks[rank].next(kModes, {4}, verdict);
      if (plans[rank].is_trial)
        ranks[rank].note(plans[rank].mode, seconds[rank][static_cast<std::size_t>(plans[rank].mode)]);
    }
    ASSERT_EQ(plans[0].mode, plans[1].mode) << call;
    ASSERT_EQ(plans[0].mode, plans[2].mode) << call;
  }
}

// Long calls are few: what is far behind costs one turn, not two.
TEST(DirectTrial, DoesNotTryAgainWhatIsFarBehind) {
  DirectTrial trial;
  SharedWord verdict{0};
  std::array<int, kCopyModes> tried = {};
  constexpr std::array<double, kCopyModes> kSeconds = {1.1, 3, 2, 1};
  for (int call = 0; call < 30; ++call) {
    const DirectTrial::Plan plan = trial.next(kModes, {2}, verdict);
    if (!plan.is_trial) continue;
    ++tried[static_cast<std::size_t>(plan.mode)];
    trial.note(plan.mode, kSeconds[static_cast<std::size_t>(plan.mode)]);
  }
  EXPECT_EQ(tried, (std::array<int, kCopyModes>{4, 2, 2, 4}));
}

// A verdict that was found twice and is clear is left alone for long: what is slow is hardly paid for.
TEST(DirectTrial, AClearVerdictIsLeftAlone) {
  DirectTrial trial;
  SharedWord verdict{0};
  EXPECT_FALSE(trial.verdict());
  int slow = 0;
  for (int call = 0; call < 800; ++call) {
    const DirectTrial::Plan plan = trial.next(kModes, {4}, verdict);
    if (plan.is_trial) trial.note(plan.mode, plan.mode == CopyMode::kernel ? 1 : 2);
    slow += call >= 20 && plan.mode != CopyMode::kernel ? 1 : 0;
  }
  EXPECT_EQ(trial.verdict(), CopyMode::kernel);
  EXPECT_EQ(slow, 3 * 4);  // the second look, at three other modes
}

// A mode that is no longer there is not used, and one that comes is tried.
TEST(DirectTrial, BeginsAgainWhenTheModesChange) {
  DirectTrial trial;
  SharedWord verdict{0};
  ASSERT_EQ(make_calls(trial, kModes, verdict, 80, {4, 3, 2, 1}), CopyMode::non_temporal);
  for (int call = 0; call < 10; ++call)
    EXPECT_NE(trial.next(std::span(kModes).first(2), {4}, verdict).mode, CopyMode::non_temporal);
  EXPECT_EQ(make_calls(trial, std::span(kModes).first(3), verdict, DirectTrial::kMostBetween, {4, 3, 2, 1}),
            CopyMode::kernel_one_shot);
}

// As of a rank whose buffers are always where others can reach them.
TEST(DirectTrial, WithoutTimesNothingChanges) {
  DirectTrial trial;
  SharedWord verdict{0};
  for (int call = 0; call < 5000; ++call) {
    const DirectTrial::Plan plan = trial.next(kModes, {4}, verdict);
    if (!plan.is_trial) ASSERT_EQ(plan.mode, CopyMode::slots);
  }
  EXPECT_EQ(make_calls(trial, kModes, verdict, 3000, {2, 1, 3, 4}), CopyMode::kernel);
}

TEST(DirectTrial, TheFirstAnswerToAQuestionStays) {
  SharedWord word{0};
  EXPECT_EQ(first_says(word, 1, 7), 7u);
  EXPECT_EQ(first_says(word, 1, 3), 7u);
  EXPECT_EQ(first_says(word, 2, 0), 0u);
  EXPECT_EQ(first_says(word, 2, kMostSaid), 0u);
}

}  // namespace
}  // namespace weft::comm
