// The shipped schedules: valid for all sizes, and consistent with their formulas and the published
// bubble rates.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "weft/parallel/pipeline/library.h"
#include "weft/parallel/pipeline/schedule_cost.h"
#include "weft/parallel/pipeline/verify.h"

namespace weft::pipeline {
namespace {

std::map<std::string, double> sizes(int stages, int micro_batches) {
  return {{"stages", stages}, {"micro_batches", micro_batches}};
}

TEST(SchedulesTest, AreValidForManySizes) {
  for (const ScheduleText& text : shipped_schedules())
    for (const int stages : {1, 2, 3, 4, 7, 8})
      for (const int micro_batches : {1, 2, 3, 5, 8, 16, 21}) {
        const auto schedule = unfold(text, sizes(stages, micro_batches));
        ASSERT_TRUE(schedule.ok()) << text.name << ": " << schedule.error().message;
        const Status right = verify(*schedule);
        EXPECT_TRUE(right.ok()) << text.name << " " << stages << " x " << micro_batches << ": "
                                << right.error().message;
      }
}

// F, B and W of a whole stage: equal, W short, F long, B long, and as different as v_half's formula
// allows.
constexpr double kTimes[][3] = {{1, 1, 1}, {3, 3, 2}, {4, 3, 2}, {3, 4, 2}, {8, 8, 5}};

// The bubble is as stated. No stage holds more than stated, and some stage reaches the maximum.
TEST(SchedulesTest, MatchTheirFormulas) {
  for (const ScheduleText& text : shipped_schedules()) {
    EXPECT_FALSE(text.bubble_text.empty()) << text.name;
    EXPECT_FALSE(text.peak_text.empty()) << text.name;
    int held = 0;
    for (const auto& [stages, micro_batches] :
         {std::pair(2, 4), std::pair(2, 9), std::pair(3, 6), std::pair(3, 12), std::pair(4, 8),
          std::pair(4, 10), std::pair(5, 15), std::pair(6, 12), std::pair(7, 14), std::pair(8, 16),
          std::pair(8, 19), std::pair(9, 27)}) {
      const auto schedule = unfold(text, sizes(stages, micro_batches));
      ASSERT_TRUE(schedule.ok()) << text.name << ": " << schedule.error().message;
      for (const auto& [forward, backward, weight] : kTimes) {
        const auto claimed = claims(text, sizes(stages, micro_batches), forward, backward, weight);
        ASSERT_TRUE(claimed.ok());
        if (!claimed->hold) continue;
        ++held;
        const auto priced = price(*schedule, Times::alike(stages, forward, backward, weight, 0));
        ASSERT_TRUE(priced.ok()) << priced.error().message;
        const std::string which =
            fmt::format("{} {} x {}, {} {} {}", text.name, stages, micro_batches, forward, backward, weight);
        EXPECT_NEAR(priced->cost - (forward + backward + weight) * micro_batches, *claimed->bubble, 1e-9)
            << which;
        const auto& peaks = priced->peak_in_flight;
        for (std::size_t stage = 0; stage < peaks.size(); ++stage)
          EXPECT_LE(peaks[stage], claimed->peak[stage] + 1e-9) << which << ", stage " << stage;
        EXPECT_NEAR(*std::max_element(peaks.begin(), peaks.end()),
                    *std::max_element(claimed->peak.begin(), claimed->peak.end()), 1e-9)
            << which;
      }
    }
    EXPECT_GE(held, 6) << text.name;
  }
}

// Pairs that overlap completely save the shorter of the two, and the bubble does not change. If
// only a part overlaps, others wait for the end of the pair, so less than that part is saved.
TEST(SchedulesTest, PairsOverlap) {
  for (const char* name : {"dualpipe", "dualpipe_v"}) {
    const Schedule schedule = unfold(*find_schedule(name).value(), sizes(4, 16)).value();
    ASSERT_TRUE(schedule.overlaps);
    const auto& order = schedule.orders[0];
    int pairs = 0;
    for (std::size_t place = 0; place < order.size(); ++place) pairs += schedule.is_pair(order, place);
    EXPECT_GT(pairs, 8);
    Times times = Times::alike(4, 3, 3, 2, 0);
    const Price apart = price(schedule, times).value();
    times.overlap = 0.5;
    const Price halfway = price(schedule, times).value();
    times.overlap = 1;
    const Price beside = price(schedule, times).value();
    EXPECT_NEAR(apart.cost - beside.cost, pairs * 3 * schedule.share(), 1e-9) << name;
    EXPECT_NEAR(*std::max_element(beside.idle.begin(), beside.idle.end()),
                *std::max_element(apart.idle.begin(), apart.idle.end()), 1e-9);
    EXPECT_LT(halfway.cost, apart.cost);
    EXPECT_GE(halfway.cost, (apart.cost + beside.cost) / 2 - 1e-9);
  }
  // Other schedules have no pairs; with too few micro-batches, pairs would wait for each other.
  EXPECT_FALSE(unfold(*find_schedule("1F1B").value(), sizes(4, 16)).value().overlaps);
  EXPECT_FALSE(unfold(*find_schedule("dualpipe").value(), sizes(8, 4)).value().overlaps);
}

TEST(SchedulesTest, DetectAPairThatDeadlocks) {
  const auto parsed = parse_schedule(
      "SCHEDULE mine (stages = 2, micro_batches = 2) OVERLAP 1 BEGIN STAGE 0: F0 F1 BW0 BW1 "
      "STAGE 1: F0 BW0 F1 BW1 END");
  EXPECT_TRUE(verify(unfold(parsed.value(), {}).value()).ok());
  const auto wrong = parse_schedule(
      "SCHEDULE mine (stages = 2, micro_batches = 2) OVERLAP 1 BEGIN STAGE 0: F0 F1 BW0 BW1 "
      "STAGE 1: F0 F1 BW0 BW1 END");
  EXPECT_EQ(verify(unfold(wrong.value(), {}).value()).error().message,
            "deadlock: stage 0 waits at its pass 3, BW0, for a message that stage 1 sends later");
}

TEST(SchedulesTest, SupportParameters) {
  auto parameters = sizes(4, 8);
  parameters["warm"] = 3;
  const auto peaks = peak_in_flight(unfold(*find_schedule("dapple").value(), parameters).value());
  EXPECT_EQ(peaks, (std::vector<double>{7, 6, 5, 4}));
  parameters["worm"] = 3;
  EXPECT_EQ(unfold(*find_schedule("dapple").value(), parameters).error().message,
            "warm_one_f_one_b has no parameter worm");
}

TEST(SchedulesTest, PrintAndParseGiveTheSameOrders) {
  for (const ScheduleText& text : shipped_schedules()) {
    const Schedule schedule = unfold(text, sizes(4, 8)).value();
    const auto again = parse_schedule(print(schedule));
    ASSERT_TRUE(again.ok()) << text.name << ": " << again.error().message;
    EXPECT_EQ(unfold(*again, {}).value().orders, schedule.orders) << text.name;
  }
}

// Qi et al., Zero bubble pipeline parallelism: 13 settings with measured times.
TEST(SchedulesTest, MatchPublishedBubbleRates) {
  const std::filesystem::path file =
      std::filesystem::path(WEFT_SOURCE_DIR) / "../shared/corpus/zb-schedules/settings.json";
  if (!std::filesystem::exists(file)) GTEST_SKIP() << "no corpus";
  std::ifstream stream(file);
  for (const auto& setting : nlohmann::json::parse(stream)) {
    const int stages = setting["p"];
    const Times times =
        Times::alike(stages, setting["T_F_us"], setting["T_B_us"], setting["T_W_us"], setting["T_comm_us"]);
    for (const char* name : {"1F1B", "1F1B-I", "ZB-H1", "ZB-H2"}) {
      auto parameters = sizes(stages, setting["m"]);
      if (std::string(name) == "1F1B-I") parameters["chunks"] = setting["interleave_chunks"];
      const auto schedule = unfold(*find_schedule(name).value(), parameters);
      ASSERT_TRUE(schedule.ok()) << schedule.error().message;
      const auto priced = price(*schedule, times);
      ASSERT_TRUE(priced.ok()) << priced.error().message;
      EXPECT_NEAR(priced->bubble_rate, setting["bubble_rate"][name].get<double>(), 1e-4)
          << setting["id"] << " " << name;
    }
  }
}

std::string refusal(const std::string& text) {
  const auto parsed = parse_schedule(text);
  if (!parsed.ok()) return parsed.error().message;
  const auto schedule = unfold(*parsed, {});
  if (!schedule.ok()) return schedule.error().message;
  const Status right = verify(*schedule);
  return right.ok() ? "right" : right.error().message;
}

TEST(SchedulesTest, ReportErrorsWithTheirLocation) {
  const std::string head = "SCHEDULE mine (stages = 2, micro_batches = 1) BEGIN ";
  EXPECT_EQ(refusal(head + "STAGE 0: F0 B0 W0 STAGE 1: F0 BW0 END"), "right");
  EXPECT_EQ(refusal(head + "STAGE 0: F0 B0 STAGE 1: F0 BW0 END"), "stage 0 never runs W0");
  EXPECT_EQ(refusal(head + "STAGE 0: F0 F0 BW0 STAGE 1: F0 BW0 END"), "done twice: F0, pass 2 of stage 0");
  EXPECT_EQ(refusal(head + "STAGE 0: BW0 F0 STAGE 1: F0 BW0 END"),
            "comes before its F: BW0, pass 1 of stage 0");
  EXPECT_EQ(refusal(head + "STAGE 0: F0 BW0 END"), "stage 1 never runs F0");
  EXPECT_EQ(refusal(head + "STAGE 0: F0 X0 END"), "expected a pass such as F0 or B3.1, found X0");
  EXPECT_EQ(refusal(head + "FOR i IN 0 TO 1e9 END END"), "expected LET, FOR, IF or a pass, found e9");
  EXPECT_EQ(refusal(head + "FOR i IN 0 TO 1000000000 LET x = i END END"),
            "the schedule takes too many steps to expand");
  EXPECT_EQ(refusal(head + "FOR i IN 0 TO 1.2.3 F(i) END END"), "expected a number, found 1.2.3");
  EXPECT_EQ(refusal(head + "F(i) END"), "unknown name: i");
}

TEST(SchedulesTest, DescribeADeadlock) {
  const auto parsed = parse_schedule(
      "SCHEDULE mine (stages = 2, micro_batches = 2) BEGIN STAGE 0: F0 BW0 F1 BW1 STAGE 1: F0 F1 BW0 BW1 "
      "END");
  const Status right = verify(unfold(parsed.value(), {}).value());
  ASSERT_FALSE(right.ok());
  EXPECT_EQ(right.error().message,
            "deadlock: stage 0 waits at its pass 2, BW0, for a message that stage 1 sends later");
}

TEST(SchedulesTest, RespectAMemoryLimit) {
  const Schedule schedule = unfold(*find_schedule("1F1B").value(), sizes(4, 8)).value();
  EXPECT_TRUE(verify(schedule, {4, 3, 2, 1}).ok());
  EXPECT_EQ(verify(schedule, {3}).error().message,
            "stage 0 holds more micro-batches than its memory allows: 4 of 3");
}

}  // namespace
}  // namespace weft::pipeline
