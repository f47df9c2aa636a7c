// The claims of schedules are tested, and a false claim is rejected with the actual value.
#include "weft/parallel/pipeline/check_claims.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "weft/parallel/pipeline/library.h"

namespace weft::pipeline {
namespace {

using Parameters = std::map<std::string, double>;

// "BUBBLE and PEAK", or the error message.
std::string verdict(const std::string& text, const Parameters& parameters) {
  const auto parsed = parse_schedule(text);
  if (!parsed.ok()) return parsed.error().message;
  const auto schedule = unfold(*parsed, parameters);
  if (!schedule.ok()) return schedule.error().message;
  const auto tested = check_claims(*parsed, *schedule, parameters);
  if (!tested.ok()) return tested.error().message;
  std::string all;
  for (const std::string& claim : *tested) all += (all.empty() ? "" : " and ") + claim;
  return all;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(ScheduleClaimsTest, ShippedSchedulesMeetTheirClaims) {
  for (const ScheduleText& text : shipped_schedules())
    for (const double stages : {2, 3, 4, 8})
      for (const double turns : {2, 3}) {
        const Parameters sizes{{"stages", stages}, {"micro_batches", stages * turns}};
        const auto schedule = unfold(text, sizes);
        ASSERT_TRUE(schedule.ok()) << schedule.error().message;
        const auto tested = check_claims(text, *schedule, sizes);
        EXPECT_TRUE(tested.ok()) << stages << " x " << stages * turns << ", " << text.name << ": "
                                 << tested.error().message;
      }
}

TEST(ScheduleClaimsTest, RejectsSlightlyWrongClaims) {
  const Parameters sizes{{"stages", 4}, {"micro_batches", 8}};
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(WEFT_SOURCE_DIR "/schedules")) {
    if (entry.path().extension() != ".schedule") continue;
    std::ostringstream read;
    read << std::ifstream(entry.path()).rdbuf();
    const std::string text = read.str();
    const std::string right = verdict(text, sizes);
    if (right.empty()) continue;  // FROM says that its claims do not cover these sizes
    ASSERT_EQ(right, "BUBBLE and PEAK") << entry.path();
    for (const char* more : {"1 + ", "W + ", "0.01 + ", "0 - 1 + "})
      EXPECT_TRUE(verdict(replaced(text, "\n  BUBBLE ", std::string("\n  BUBBLE ") + more), sizes)
                      .starts_with("BUBBLE "))
          << entry.path() << " " << more;
    // Correct unless one of the times is much longer than the others.
    for (const char* more : {"max(0, F - 2 * B) + ", "max(0, B - 2 * F) + "})
      EXPECT_TRUE(text.find("\n  FROM ") != std::string::npos ||
                  verdict(replaced(text, "\n  BUBBLE ", std::string("\n  BUBBLE ") + more), sizes)
                      .starts_with("BUBBLE "))
          << entry.path() << " " << more;
    for (const char* more : {"1 + ", "0.5 * ", "0 - 1 + "})
      EXPECT_TRUE(
          verdict(replaced(text, "\n  PEAK ", std::string("\n  PEAK ") + more), sizes).starts_with("PEAK "))
          << entry.path() << " " << more;
    ++files;
  }
  EXPECT_GE(files, 10);
}

TEST(ScheduleClaimsTest, ReportsClaimedAndActualValues) {
  const auto with = [](const std::string& claim) {
    return "SCHEDULE mine (stages = 2, micro_batches = 2) CLOCK end " + claim +
           " BEGIN STAGE 0: F0 F1 BW0 BW1 STAGE 1: F0 BW0 F1 BW1 END";
  };
  EXPECT_EQ(verdict(with("BUBBLE F + B + W PEAK 2 - stage"), {}), "BUBBLE and PEAK");
  EXPECT_EQ(verdict(with("PEAK 1"), {}), "PEAK 1 is false: 1 claimed for stage 0, which holds 2");
  EXPECT_EQ(verdict(with("PEAK 3"), {}), "PEAK 3 is false: 3 claimed, but stage 0 holds the most, 2");
  EXPECT_EQ(verdict(with("BUBBLE 0"), {}),
            "BUBBLE 0 is false: 0 claimed where F, B and W take 1, 1 and 1, it is 3");
  EXPECT_EQ(verdict(with("BUBBLE 0 FROM micro_batches > 2"), {}), "");
}

}  // namespace
}  // namespace weft::pipeline
