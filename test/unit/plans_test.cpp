// `weft plan`: plans found and plans written, proven against the plan of one device.
#include "weft/session/plans.h"

#include <string>

#include <gtest/gtest.h>

#include "temporary_folder.h"
#include "weft/base/file.h"

namespace weft::session {
namespace {

constexpr std::string_view kStatement =
    "INFER digits_mlp ON LOCAL 2 WITH (b = 4, p = 4, f = 4, c = 3, distribution = 'rank=2: slice f')";

std::string written() {
  Session session;
  const Reply reply = session.execute("EXPLAIN (FORMAT plan) " + std::string(kStatement));
  EXPECT_EQ(reply.exit_code, ExitCode::ok) << reply.complaint;
  return reply.output;
}

std::string replaced(std::string text, std::string_view what, std::string_view with) {
  const std::size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what << " in\n" << text;
  return at == std::string::npos ? text : text.replace(at, what.size(), with);
}

class Plans : public ::testing::Test {
 protected:
  Reply prove(const std::string& text, std::string model = {}, std::string mesh = {}) {
    const std::string path = folder_ / "step.plan";
    EXPECT_TRUE(write_file_atomically(path, text).ok());
    return run(PlanProve{.what = {path}, .model = std::move(model), .mesh = std::move(mesh)});
  }
  void expect_refused(const Reply& reply, std::string_view why) {
    EXPECT_EQ(reply.exit_code, ExitCode::user_error);
    EXPECT_NE(reply.complaint.find(why), std::string::npos) << reply.output << reply.complaint;
  }

  TemporaryFolder folder_;
};

TEST_F(Plans, WhatTheSearchFindsIsProven) {
  const Reply reply = run(PlanProve{.what = {std::string(kStatement)}, .format = Format::json});
  EXPECT_EQ(reply.exit_code, ExitCode::ok) << reply.complaint;
  EXPECT_NE(reply.output.find(R"("distribution":"rank=2: slice f","proven":true)"), std::string::npos)
      << reply.output;
}

TEST_F(Plans, EveryStatementOfAScriptIsProven) {
  const Reply reply = run(PlanProve{
      .what = {
          "CREATE MODEL twice (b = 8, d = 4) INPUT x[b, d] AS SELECT x + x FROM x;"
          "SET distribution = 'rank=2: slice b'; INFER twice ON LOCAL 2; EXPLAIN INFER twice ON LOCAL 2"}});
  EXPECT_EQ(reply.exit_code, ExitCode::ok) << reply.complaint;
  const std::size_t first = reply.output.find("proven equal");
  ASSERT_NE(first, std::string::npos) << reply.output;
  EXPECT_NE(reply.output.find("proven equal", first + 1), std::string::npos) << reply.output;
}

TEST_F(Plans, AWrittenPlanIsProvenByItsOwnHead) {
  const Reply reply = prove(written());
  EXPECT_EQ(reply.exit_code, ExitCode::ok) << reply.complaint;
  EXPECT_NE(reply.output.find("its own sizes on rank=2"), std::string::npos) << reply.output;
}

TEST_F(Plans, UnevenSlicesAreProvenAsTheyAre) {
  Session session;
  const Reply plan = session.execute(
      "EXPLAIN (FORMAT plan) TRAIN digits_mlp ON LOCAL 3 "
      "WITH (b = 5, p = 4, f = 7, c = 3, optimizer = sgd, distribution = 'rank=3: slice f, b')");
  ASSERT_EQ(plan.exit_code, ExitCode::ok) << plan.complaint;
  EXPECT_NE(plan.output.find("optimizer = sgd)"), std::string::npos) << plan.output;
  const Reply reply = prove(plan.output);
  EXPECT_EQ(reply.exit_code, ExitCode::ok) << reply.complaint;
  EXPECT_NE(reply.output.find("its own sizes on rank=3"), std::string::npos) << reply.output;
}

TEST_F(Plans, AnotherOperatorIsRefusedWithItsNodeAndRank) {
  expect_refused(prove(replaced(written(), "= relu ", "= tanh ")), "(tanh at h), sliced(f) on rank: rank 0");
}

TEST_F(Plans, AnotherAttributeIsRefused) {
  expect_refused(prove(replaced(written(), "kind=mean", "kind=sum")), "(reduce at loss)");
}

TEST_F(Plans, AddendsThatAreNeverCombinedAreRefused) {
  expect_refused(prove(replaced(written(), "= all-reduce %11 {axis=rank}", "= relu %11")), "relu");
}

TEST_F(Plans, ALargePlanIsProvenAtSmallSizesAndItsChangesStay) {
  Session session;
  const Reply large = session.execute(
      "EXPLAIN (FORMAT plan) TRAIN digits_mlp ON LOCAL 4 "
      "WITH (b = 4096, f = 8192, distribution = 'rank=4: slice b, shard parameters')");
  ASSERT_EQ(large.exit_code, ExitCode::ok) << large.complaint;
  const Reply right = prove(large.output);
  EXPECT_EQ(right.exit_code, ExitCode::ok) << right.complaint;
  EXPECT_NE(right.output.find("b = 4, p = 4, f = 4"), std::string::npos) << right.output;
  expect_refused(prove(replaced(large.output, "= relu ", "= sigmoid ")), "(sigmoid at h)");
}

TEST_F(Plans, TheModelMustBeThePlans) {
  expect_refused(prove(written(), "INFER digits_mlp WITH (b = 8, p = 4, f = 4, c = 3)"),
                 "label is i32[b=8] in the model, i32[b=4] in the plan");
  expect_refused(prove(replaced(written(), "# model: ", "# modle: ")), "does not say of what model");
  expect_refused(prove(replaced(written(), "# mesh: ", "# mehs: ")), "does not say its mesh");
  expect_refused(prove(written(), {}, "gpu=2"), "rank");
  expect_refused(prove(replaced(written(), "return loss=", "return lost=")), "lost");
  expect_refused(prove(written(), "SHOW MODELS"), "no TRAIN");
}

TEST_F(Plans, WhatIsNoPlanIsRefusedWithItsPlace) {
  expect_refused(prove(replaced(written(), "= contract ", "= contrakt ")), "contract");
  expect_refused(run(PlanProve{.what = {"nowhere.plan"}}), "nowhere.plan");
  expect_refused(run(PlanProve{.what = {"INFER digits_mlp"}}), "one device");
  expect_refused(run(PlanProve{.what = {"SHOW MODELS; SHOW CLUSTERS"}}), "nothing to prove");
}

TEST_F(Plans, ShowWritesLayouts) {
  const std::string path = folder_ / "step.plan";
  ASSERT_TRUE(write_file_atomically(path, written()).ok());
  const Reply reply = run(PlanShow{.file = path});
  EXPECT_EQ(reply.exit_code, ExitCode::ok) << reply.complaint;
  EXPECT_NE(reply.output.find("partial(sum) on rank"), std::string::npos) << reply.output;
  EXPECT_NE(reply.output.find("* %12 = all-reduce"), std::string::npos) << reply.output;
}

}  // namespace
}  // namespace weft::session
