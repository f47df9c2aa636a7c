// Plans that are right are accepted, plans that were broken on purpose are refused, with the place.
#include <gtest/gtest.h>

#include "../../plans/plan_cases.h"
#include "weft/collectives/check/check.h"

namespace weft::collective {
namespace {

TEST(BrokenPlans, WhatIsRightIsAccepted) {
  for (const plans::GoodPlan& good : plans::good_plans()) {
    const Report report = check(plans::plan_of(std::string(good.text)));
    EXPECT_FALSE(report.finding) << good.name << ": " << (report.finding ? print(*report.finding) : "");
  }
}

TEST(BrokenPlans, EachIsRefusedForItsReason) {
  for (const plans::BrokenPlan& broken : plans::broken_plans()) {
    const Report report = check(plans::broken_plan(broken));
    ASSERT_TRUE(report.finding) << broken.what << " (" << broken.base << ") was accepted";
    const std::string told = print(*report.finding);
    EXPECT_NE(told.find(broken.words), std::string::npos) << broken.what << ": " << told;
  }
}

}  // namespace
}  // namespace weft::collective
