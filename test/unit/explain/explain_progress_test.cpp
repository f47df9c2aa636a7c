// How training progress is displayed, in terminals of every width and in logs.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "weft/app/explain/progress.h"
#include "weft/base/utf8.h"

namespace weft::explain {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

Progress digits() {
  return {.model = "digits_mlp",
          .step = 612,
          .steps = 1350,
          .loss = 0.0418,
          .rows_per_second = 281e3,
          .seconds_left = 3.2};
}

std::size_t letters(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(text, starts_character));
}

TEST(ProgressBar, ShowsEverythingIfThereIsRoom) {
  EXPECT_EQ(progress_bar(digits(), 82, true),
            "digits_mlp  ━━━━━━━━╸──────────    612/1,350  loss 0.0418  281 k rows/s  0:03 left");
  EXPECT_EQ(progress_bar(digits(), 82, false),
            "digits_mlp  ========>----------    612/1,350  loss 0.0418  281 k rows/s  0:03 left");
}

TEST(ProgressBar, ShowsPlansTriedBestAndBoundOfASearch) {
  Progress search{.model = "gpt2", .step = 1140, .has_loss = false};
  search.search = SearchProgress{.best_seconds = 0.0352, .bound_seconds = 0.0041, .seconds = 72.9};
  EXPECT_EQ(progress_bar(search, 80, true), "gpt2  tried 1,140 plans  best 35.2 ms  bound 4.1 ms  1:12");
  EXPECT_EQ(progress_bar(search, 56, true), "gpt2  tried 1,140 plans  best 35.2 ms  1:12");
  EXPECT_EQ(progress_bar(search, 40, true), "tried 1,140 plans  best 35.2 ms  1:12");
  EXPECT_EQ(progress_bar(search, 25, true), "tried 1,140 plans");
  EXPECT_EQ(progress_bar(search, 9, true), "");
  search.search->best_seconds = 0;
  search.step = 1;
  EXPECT_EQ(progress_bar(search, 80, true), "gpt2  tried 1 plan  none fits yet  bound 4.1 ms  1:12");
}

TEST(ProgressBar, DropsTheRateThenTheTimeThenTheBarThenTheName) {
  EXPECT_EQ(progress_bar(digits(), 68, false),
            "digits_mlp  ========>----------    612/1,350  loss 0.0418  0:03 left");
  EXPECT_EQ(progress_bar(digits(), 50, false), "digits_mlp  =====-------    612/1,350  loss 0.0418");
  EXPECT_EQ(progress_bar(digits(), 40, false), "digits_mlp    612/1,350  loss 0.0418");
  EXPECT_EQ(progress_bar(digits(), 30, false), "  612/1,350  loss 0.0418");
  EXPECT_EQ(progress_bar(digits(), 15, false), "  612/1,350");
}

// A truncated step number would be a different step.
TEST(ProgressBar, ShrinksToAPercentage) {
  EXPECT_EQ(progress_bar(digits(), 10, true), "45%");
  EXPECT_EQ(progress_bar(digits(), 3, true), "45%");
  EXPECT_EQ(progress_bar(digits(), 2, true), "");
  EXPECT_EQ(progress_bar(digits(), 0, true), "");
  EXPECT_EQ(progress_bar(digits(), -1, true), "");
}

TEST(ProgressBar, IsNeverWiderThanTheTerminal) {
  const double numbers[] = {0, -1, 1e-300, 3e-5, 0.5, 9.99995, 281e3, 1e20, 1e300, kNan, -kNan, kInfinity};
  const std::int64_t counts[] = {0, 1, 999, 1'000'000, std::numeric_limits<std::int64_t>::max()};
  for (const double number : numbers)
    for (const std::int64_t count : counts)
      for (const bool unicode : {false, true}) {
        const Progress progress{.model = "gpt3_175b",
                                .step = count / 2,
                                .steps = count,
                                .loss = number,
                                .rows_per_second = number,
                                .what = "tokens",
                                .seconds_left = number};
        for (int width = 0; width <= 200; ++width) {
          const std::string line = progress_bar(progress, width, unicode);
          ASSERT_LE(letters(line), static_cast<std::size_t>(width)) << line;
          ASSERT_EQ(line.find('\n'), std::string::npos);
          ASSERT_EQ(line.find("-nan"), std::string::npos) << line;
          if (!unicode) {
            ASSERT_EQ(letters(line), line.size()) << line;
          }
          if (width >= 70) {
            ASSERT_NE(line.find("loss"), std::string::npos) << line;
          }
        }
      }
}

TEST(ProgressBar, IsFullOnlyAtTheEnd) {
  Progress progress{.model = "m", .steps = 1000, .loss = 1};
  std::size_t before = 0;
  for (progress.step = 0; progress.step <= 1000; ++progress.step) {
    const std::string line = progress_bar(progress, 200, false);
    const auto full = static_cast<std::size_t>(std::ranges::count(line, '='));
    ASSERT_GE(full, before) << line;
    ASSERT_EQ(full == 30, progress.step == 1000) << line;
    before = full;
  }
  progress.step = 2000;  // more than announced
  EXPECT_EQ(std::ranges::count(progress_bar(progress, 200, false), '='), 30);
}

// Growing or shrinking numbers must not shift the rest of the line.
TEST(ProgressBar, DoesNotShift) {
  Progress progress = digits();
  for (progress.step = 1; progress.step < progress.steps; progress.step += 7) {
    progress.loss = 9.9 * std::exp(-static_cast<double>(progress.step) / 200);
    const std::string line = progress_bar(progress, 90, false);
    ASSERT_EQ(line.size(), 90u) << line;
    ASSERT_EQ(line.find("loss"), progress_bar(digits(), 90, false).find("loss")) << line;
  }
}

TEST(ProgressBar, WithoutANumberOfStepsHasNoBar) {
  Progress progress = digits();
  progress.steps = 0;
  EXPECT_EQ(progress_bar(progress, 80, true), "digits_mlp  step 612  loss 0.0418  281 k rows/s  0:03 left");
  EXPECT_EQ(progress_bar(progress, 40, true), "digits_mlp  step 612  loss 0.0418");
  EXPECT_EQ(progress_bar(progress, 4, true), "");
}

// A terminal uses two columns for each of these characters.
TEST(ProgressBar, SupportsWideCharacters) {
  Progress progress = digits();
  progress.model = "模型";
  EXPECT_EQ(progress_bar(progress, 33, true), "模型    612/1,350  loss 0.0418");
  EXPECT_EQ(progress_bar(progress, 30, true), "模型    612/1,350  loss 0.0418");
  EXPECT_EQ(progress_bar(progress, 29, true), "  612/1,350  loss 0.0418");
}

TEST(ProgressBar, StaysOnOneLineForAnyName) {
  Progress progress = digits();
  progress.model = "two\nlines\x1b";
  EXPECT_EQ(progress_bar(progress, 42, true), "two lines     612/1,350  loss 0.0418");
}

TEST(ProgressBar, CountsTimeDownLikeAClock) {
  const auto left = [](double seconds) {
    Progress progress = digits();
    progress.seconds_left = seconds;
    const std::string line = progress_bar(progress, 200, true);
    const std::size_t at = line.find("rows/s") + 6;
    return line.substr(at);
  };
  EXPECT_EQ(left(0), "  0:00 left");
  EXPECT_EQ(left(59.6), "  1:00 left");
  EXPECT_EQ(left(3599), "  59:59 left");
  EXPECT_EQ(left(3723), "  1:02:03 left");
  EXPECT_EQ(left(90000), "  25:00:00 left");
  EXPECT_EQ(left(1e6), "  11 d left");
  EXPECT_EQ(left(-1), "");
  EXPECT_EQ(left(kNan), "");
  EXPECT_EQ(left(kInfinity), "");
}

TEST(ProgressLine, IsForLogs) {
  EXPECT_EQ(progress_line(digits()), "step 612 of 1,350  loss 0.0418  281 k rows/s  3 s left\n");
  EXPECT_EQ(progress_line({.model = "m", .step = 7, .loss = 2.302585, .what = "tokens"}),
            "step 7  loss 2.3026\n");
}

TEST(ProgressLine, OmitsUnknownFigures) {
  Progress progress = digits();
  progress.seconds_left = kNan;
  EXPECT_EQ(progress_line(progress), "step 612 of 1,350  loss 0.0418  281 k rows/s\n");
  progress.rows_per_second = kInfinity;
  EXPECT_EQ(progress_line(progress), "step 612 of 1,350  loss 0.0418\n");
  progress.loss = -kNan;
  EXPECT_EQ(progress_line(progress), "step 612 of 1,350  loss nan\n");
}

TEST(ProgressLine, OmitsTheTimeLeftAtTheLastStep) {
  Progress progress = digits();
  progress.step = progress.steps;
  progress.seconds_left = 0;
  EXPECT_EQ(progress_line(progress), "step 1,350 of 1,350  loss 0.0418  281 k rows/s\n");
}

TEST(ProgressLine, PrintsTimesWithUnits) {
  const auto left = [](double seconds) {
    return progress_line({.step = 1, .steps = 2, .loss = 0, .seconds_left = seconds}).substr(26);
  };
  EXPECT_EQ(left(0.4), "0 s left\n");
  EXPECT_EQ(left(60), "1 min left\n");
  EXPECT_EQ(left(125), "2 min 5 s left\n");
  EXPECT_EQ(left(3840), "1 h 4 min left\n");
  EXPECT_EQ(left(12 * 86400 + 3 * 3600), "12 d 3 h left\n");
}

TEST(ProgressLine, PrintsLargeAndSmallNumbers) {
  const auto line = [](double loss, double rate) {
    return progress_line({.step = 1, .loss = loss, .rows_per_second = rate, .what = "tokens"});
  };
  EXPECT_EQ(line(123456, 1.2345e9), "step 1  loss 1.23e+05  1.23 G tokens/s\n");
  EXPECT_EQ(line(0.000123, 0.5), "step 1  loss 1.23e-04  30 tokens/min\n");
  EXPECT_EQ(line(-12.5, 0.001), "step 1  loss -12.5000  3.6 tokens/h\n");
  EXPECT_EQ(line(0, 1e-9), "step 1  loss 0.0000\n");
  EXPECT_EQ(line(kInfinity, 1e300), "step 1  loss inf\n");
}

}  // namespace
}  // namespace weft::explain
