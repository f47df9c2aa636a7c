// How the learning rate changes over steps.
#include <gtest/gtest.h>

#include "weft/runtime/run/schedule.h"

namespace weft::run {
namespace {

TEST(Schedule, WarmsUpAndDecays) {
  const Schedule cosine{.kind = ScheduleKind::cosine, .warmup = 4, .first = 10, .steps = 12, .end = 0.1};
  EXPECT_DOUBLE_EQ(rate_at(cosine, 10), 0.25);
  EXPECT_DOUBLE_EQ(rate_at(cosine, 13), 1);
  EXPECT_DOUBLE_EQ(rate_at(cosine, 14), 1);
  EXPECT_DOUBLE_EQ(rate_at(cosine, 18), 0.55);  // halfway
  EXPECT_DOUBLE_EQ(rate_at(cosine, 22), 0.1);
  EXPECT_DOUBLE_EQ(rate_at(cosine, 1000), 0.1);
  const Schedule linear{.kind = ScheduleKind::linear, .steps = 10};
  EXPECT_DOUBLE_EQ(rate_at(linear, 0), 1);
  EXPECT_DOUBLE_EQ(rate_at(linear, 5), 0.5);
  EXPECT_DOUBLE_EQ(rate_at(linear, 10), 0);
}

TEST(Schedule, StepsDown) {
  const Schedule stairs{.kind = ScheduleKind::step, .steps = 9, .factor = 0.5};
  EXPECT_DOUBLE_EQ(rate_at(stairs, 2), 1);
  EXPECT_DOUBLE_EQ(rate_at(stairs, 3), 0.5);
  EXPECT_DOUBLE_EQ(rate_at(stairs, 8), 0.25);
  const Schedule often{.kind = ScheduleKind::step, .warmup = 1, .steps = 9, .every = 2, .factor = 0.5};
  EXPECT_DOUBLE_EQ(rate_at(often, 3), 0.5);
}

TEST(Schedule, IsConstantByDefault) {
  const Schedule none;
  EXPECT_FALSE(none.changes());
  EXPECT_DOUBLE_EQ(rate_at(none, 77), 1);
  EXPECT_TRUE((Schedule{.warmup = 1}).changes());
  for (const std::string_view known : schedule_names()) EXPECT_EQ(name(*find_schedule(known)), known);
  EXPECT_FALSE(find_schedule("cosin").has_value());
}

}  // namespace
}  // namespace weft::run
