// EXPLAIN (STAGES): one row per planner stage; disabled stages have none.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "session_case.h"

namespace weft::session {
namespace {

using Json = nlohmann::json;

Json stages_of(Session& session, const std::string& statement) {
  return answer(session, "EXPLAIN (STAGES, FORMAT json) " + statement).at("stages");
}

const Json* row(const Json& stages, std::string_view name) {
  for (const Json& stage : stages)
    if (stage.at("stage") == name) return &stage;
  return nullptr;
}

constexpr std::string_view kOnCluster = "TRAIN digits_mlp ON ethernet WITH (b = 512, f = 512, prove = false";

TEST(Stages, TheLastRowIsTheChosenPlan) {
  Session session;
  const std::string statement = std::string(kOnCluster) + ")";
  const Json stages = stages_of(session, statement);
  const Json plan = answer(session, "EXPLAIN (FORMAT json) " + statement);
  ASSERT_FALSE(stages.empty());
  EXPECT_DOUBLE_EQ(stages.back().at("seconds").get<double>(), plan.at("step_seconds").get<double>());
}

TEST(Stages, RowsReportMemoryPlansTriedAndTime) {
  Session session;
  const Json stages = stages_of(session, std::string(kOnCluster) + ")");
  const Json* distribute = row(stages, "distribute");
  ASSERT_NE(distribute, nullptr) << stages;
  EXPECT_GT(distribute->at("tried").get<int>(), 1);
  EXPECT_GT(distribute->at("bytes").get<double>(), 0);
  double spent = 0;
  for (const Json& stage : stages)
    if (!stage.contains("off")) spent += stage.at("seconds_spent").get<double>();
  const Json whole = answer(session, "EXPLAIN (STAGES, FORMAT json) " + std::string(kOnCluster) + ")");
  EXPECT_GT(spent, 0);
  EXPECT_GT(whole.at("planning_seconds").get<double>(), 0);
}

TEST(Stages, PipelinedPlansHaveARowThatCanBeDisabled) {
  Session session;
  const Json stages = stages_of(session, std::string(kOnCluster) + ")");
  ASSERT_NE(row(stages, "pipeline"), nullptr) << stages;
  const Json off = stages_of(session, std::string(kOnCluster) + ", disabled_stages = 'pipeline')");
  EXPECT_EQ(row(off, "pipeline"), nullptr) << off;
}

TEST(Stages, WorksForOneDevice) {
  Session session;
  const Json stages = stages_of(session, "TRAIN digits_mlp");
  EXPECT_NE(row(stages, "rewrite"), nullptr) << stages;
  EXPECT_EQ(row(stages, "distribute"), nullptr) << stages;
}

// A given pipelined distribution: the estimate is the one shown.
TEST(Stages, AGivenPipelinedPlanHasARow) {
  Session session;
  const std::string statement =
      "TRAIN digits_mlp ON ethernet WITH (b = 512, f = 512, prove = false, distribution = "
      "'node_a=2: stage; node_b=4: slice b; micro=8; schedule one_f_one_b')";
  const Json stages = stages_of(session, statement);
  const Json* pipeline = row(stages, "pipeline");
  ASSERT_NE(pipeline, nullptr) << stages;
  const Json plan = answer(session, "EXPLAIN (FORMAT json) " + statement);
  EXPECT_DOUBLE_EQ(pipeline->at("seconds").get<double>(), plan.at("step_seconds").get<double>());
}

}  // namespace
}  // namespace weft::session
