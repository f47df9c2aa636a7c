// Correct plans are accepted; deliberately broken plans are rejected, with the location.
#include <gtest/gtest.h>

#include "../../plans/plan_cases.h"
#include "weft/collectives/check/check.h"

namespace weft::collective {
namespace {

TEST(BrokenPlans, AcceptsCorrectPlans) {
  for (const plans::GoodPlan& good : plans::good_plans()) {
    const Report report = check(plans::plan_of(std::string(good.text)));
    EXPECT_FALSE(report.finding) << good.name << ": " << (report.finding ? print(*report.finding) : "");
  }
}

TEST(BrokenPlans, RejectsEachForItsReason) {
  for (const plans::BrokenPlan& broken : plans::broken_plans()) {
    const Report report = check(plans::broken_plan(broken));
    ASSERT_TRUE(report.finding) << broken.what << " (" << broken.base << ") was accepted";
    const std::string message = print(*report.finding);
    EXPECT_NE(message.find(broken.words), std::string::npos) << broken.what << ": " << message;
  }
}

}  // namespace
}  // namespace weft::collective
