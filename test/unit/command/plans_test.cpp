// `weft plan`: plans found by the search and written plans, proven against the plan of one device
// and estimated on clusters.
#include "weft/app/command/plans.h"

#include <string>
#include <utility>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <regex>

#include "temporary_folder.h"
#include "weft/base/file.h"

namespace weft::command {

using namespace session;
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
    return run(
        PlanProve{.what = {file("step.plan", text)}, .model = std::move(model), .mesh = std::move(mesh)});
  }
  Reply price(const std::string& text, std::string cluster = {}, std::string mesh = {},
              Format format = Format::text) {
    return run(PlanEstimate{file("step.plan", text), std::move(cluster), std::move(mesh), format});
  }
  std::string file(const std::string& name, std::string_view text) {
    const std::string path = folder_ / name;
    EXPECT_TRUE(write_file_atomically(path, text).ok());
    return path;
  }
  void expect_refused(const Reply& reply, std::string_view why) {
    EXPECT_EQ(reply.exit_code, ExitCode::user_error);
    EXPECT_NE(reply.complaint.find(why), std::string::npos) << reply.output << reply.complaint;
  }

  TemporaryFolder folder_;
};

TEST_F(Plans, PlansOfTheSearchAreProven) {
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

TEST_F(Plans, AWrittenPlanIsProvenFromItsHeader) {
  const Reply reply = prove(written());
  EXPECT_EQ(reply.exit_code, ExitCode::ok) << reply.complaint;
  EXPECT_NE(reply.output.find("its own sizes on rank=2"), std::string::npos) << reply.output;
}

// The text states the phase of every node. In a text without phases, an older format, all nodes are
// forward.
TEST_F(Plans, AWrittenTrainingPlanHasPhases) {
  Session session;
  const std::string text =
      session
          .execute(
              "EXPLAIN (FORMAT plan) TRAIN digits_mlp ON LOCAL 2 WITH (b = 4, p = 4, f = "
              "4, c = 3, optimizer = sgd, distribution = 'rank=2: slice f')")
          .output;
  EXPECT_EQ(prove(text).exit_code, ExitCode::ok) << prove(text).complaint;

  std::string old = text;
  for (const std::string_view phase : {" in backward", " in update"}) {
    ASSERT_NE(old.find(phase), std::string::npos) << old;
    for (std::size_t at = 0; (at = old.find(phase)) != std::string::npos;) old.erase(at, phase.size());
  }
  EXPECT_EQ(prove(old).exit_code, ExitCode::ok) << prove(old).complaint;

  constexpr std::string_view kBackward = " in backward";
  std::string wrong = text;
  wrong.erase(wrong.rfind(kBackward), kBackward.size());
  expect_refused(prove(wrong), "runs in the forward phase and reads %");
  expect_refused(price(wrong), "runs in the forward phase and reads %");
}

TEST_F(Plans, UnevenSlicesAreProvenAtTheirOwnSizes) {
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

TEST_F(Plans, RejectsAWrongOperatorWithItsNodeAndRank) {
  expect_refused(prove(replaced(written(), "= relu ", "= tanh ")), "(tanh at h), sliced(f) on rank: rank 0");
}

TEST_F(Plans, RejectsAWrongAttribute) {
  expect_refused(prove(replaced(written(), "{over=c}", "{over=c, smoothing=0.5}")),
                 "(cross-entropy at loss)");
}

TEST_F(Plans, RejectsPartialValuesThatAreNeverReduced) {
  expect_refused(prove(replaced(written(), "= all-reduce %11 {axis=rank}", "= relu %11")), "relu");
}

TEST_F(Plans, ALargePlanIsProvenAtSmallSizesWithItsChanges) {
  Session session;
  const Reply large = session.execute(
      "EXPLAIN (FORMAT plan) TRAIN digits_mlp ON LOCAL 4 "
      "WITH (b = 4096, f = 8192, distribution = 'rank=4: slice b, shard parameters')");
  ASSERT_EQ(large.exit_code, ExitCode::ok) << large.complaint;
  const Reply right = prove(large.output);
  EXPECT_EQ(right.exit_code, ExitCode::ok) << right.complaint;
  EXPECT_NE(right.output.find("in f64, at b = "), std::string::npos) << right.output;
  EXPECT_NE(right.output.find("on 2 and 3 ranks"), std::string::npos) << right.output;
  expect_refused(prove(replaced(large.output, "= relu ", "= sigmoid ")), "(sigmoid at h)");
}

TEST_F(Plans, RejectsAModelOfAnotherPlan) {
  expect_refused(prove(written(), "INFER digits_mlp WITH (b = 8, p = 4, f = 4, c = 3)"),
                 "label is i32[b=8] in the model, i32[b=4] in the plan");
  expect_refused(prove(replaced(written(), "# model: ", "# modle: ")), "does not name its model");
  expect_refused(prove(replaced(written(), "# mesh: ", "# mehs: ")), "does not state its mesh");
  expect_refused(prove(written(), {}, "gpu=2"), "rank");
  expect_refused(prove(replaced(written(), "return loss=", "return lost=")), "lost");
  expect_refused(prove(written(), "SHOW MODELS"), "no TRAIN");
}

TEST_F(Plans, ReportsTheLocationOfSyntaxErrors) {
  expect_refused(prove(replaced(written(), "= contract ", "= contrakt ")), "contract");
  expect_refused(run(PlanProve{.what = {"nowhere.plan"}}), "nowhere.plan");
  expect_refused(run(PlanProve{.what = {"INFER digits_mlp"}}), "single-device");
  expect_refused(run(PlanProve{.what = {"SHOW MODELS; SHOW CLUSTERS"}}), "nothing to prove");
}

TEST_F(Plans, ShowPrintsLayouts) {
  const Reply reply = run(PlanShow{.file = file("step.plan", written())});
  EXPECT_EQ(reply.exit_code, ExitCode::ok) << reply.complaint;
  EXPECT_NE(reply.output.find("partial(sum) on rank"), std::string::npos) << reply.output;
  EXPECT_NE(reply.output.find("* %12 = all-reduce"), std::string::npos) << reply.output;
}

// Small, so that its collectives simulate quickly.
constexpr std::string_view kCluster =
    "CREATE CLUSTER own AS 2 NODES OF 2 DEVICES h100"
    " LINK gpu WITHIN node (10 GB/s, 2 us) LINK ib ACROSS node (1 GB/s, 9 us);";
constexpr std::string_view kOnOwn =
    "TRAIN digits_mlp ON own WITH (b = 64, f = 256, distribution = 'node=2: slice b; gpu=2: slice f')";

std::string explained(std::string_view format, std::string_view statement) {
  Session session;
  const Reply reply = session.execute(fmt::format("{} EXPLAIN (FORMAT {}) {}", kCluster, format, statement));
  EXPECT_EQ(reply.exit_code, ExitCode::ok) << reply.complaint;
  return reply.output.substr(reply.output.find('\n') + 1);  // skips the answer to CREATE
}

TEST_F(Plans, EstimatesAPlanAsExplainDoes) {
  for (const auto& [statement, cluster] :
       {std::pair{kOnOwn, file("own.weft", kCluster)}, std::pair{kStatement, std::string()}}) {
    const Reply reply = price(explained("plan", statement), cluster, {}, Format::json);
    ASSERT_EQ(reply.exit_code, ExitCode::ok) << reply.complaint;
    const auto priced = nlohmann::json::parse(reply.output),
               planned = nlohmann::json::parse(explained("json", statement));
    for (const char* fact :
         {"cluster", "device", "devices", "step_seconds", "memory_per_rank_bytes", "memory",
          "compute_seconds", "communication_seconds", "exposed_communication_seconds", "bytes_sent_by_axis",
          "bound_by", "compute_seconds_by_source", "collectives"})
      EXPECT_EQ(priced.at(fact), planned.at(fact)) << fact << " of " << statement;
    EXPECT_NEAR(priced.at("mfu").get<double>() / planned.at("mfu").get<double>(), 1, 0.05);
    EXPECT_EQ(priced.at("fits"), true);
  }
}

TEST_F(Plans, PrintsTheReportOfExplain) {
  const std::string explanation = explained("text, COLLECTIVES", kOnOwn);
  const Reply reply = price(explained("plan", kOnOwn), file("own.weft", kCluster));
  EXPECT_NE(reply.output.find(" on own: node=2, gpu=2\n"), std::string::npos) << reply.output;
  for (const std::string_view begins : {"\nMemory ", "\nTime ", "\nSure ", "\nall-reduce "}) {
    const std::size_t at = reply.output.find(begins);
    ASSERT_NE(at, std::string::npos) << begins << " in\n" << reply.output;
    const std::string line = reply.output.substr(at, reply.output.find('\n', at + 1) - at);
    EXPECT_NE(explanation.find(line), std::string::npos) << line << " in\n" << explanation;
  }
  EXPECT_NE(reply.output.find("\nsent per rank: node "), std::string::npos) << reply.output;
}

TEST_F(Plans, EstimatesAnEditedPlan) {
  const std::string cluster = file("own.weft", kCluster);
  const auto sent = [&](const std::string& plan) {
    const Reply reply = price(plan, cluster, {}, Format::json);
    EXPECT_EQ(reply.exit_code, ExitCode::ok) << reply.complaint;
    return nlohmann::json::parse(reply.output).at("bytes_sent_by_axis").at("node").get<std::int64_t>();
  };
  const std::string text = explained("plan", kOnOwn);
  const std::string gathers =
      replaced(replaced(text, "return ",
                        "%64 = all-gather %13 {axis=node, along=b} : f32[b=64,c=10] @logits\nreturn "),
               "logits=%13", "logits=%64");
  EXPECT_EQ(sent(gathers) - sent(text), 32 * 10 * 4);
}

TEST_F(Plans, EstimatesAPlanThatDoesNotFit) {
  const std::string script =
      "CREATE DEVICE small (f32 = 1 TFLOP/s, memory = 1 KiB, bandwidth = 100 GB/s, launch = 1 us);" +
      replaced(std::string(kCluster), "h100", "small");
  const Reply reply = price(explained("plan", kOnOwn), file("small.weft", script));
  EXPECT_EQ(reply.exit_code, ExitCode::ok) << reply.complaint;
  EXPECT_NE(reply.output.find("does not fit: needs "), std::string::npos) << reply.output;
  EXPECT_NE(reply.output.find(" per device, 963 B usable (1 KiB, reserve 6 %)"), std::string::npos)
      << reply.output;
}

TEST_F(Plans, RejectsAClusterOfAnotherShape) {
  const std::string text = explained("plan", kOnOwn);
  expect_refused(price(text), "does not name its cluster; its mesh is node=2, gpu=2");
  expect_refused(price(text, "podd"), "did you mean 'pod'");
  expect_refused(price(text, "pod"), "the mesh is node=2, gpu=2, pod is node=4, gpu=8");
  expect_refused(price(text, "LOCAL 4"), "LOCAL 4 is rank=4");
  expect_refused(price(text, "local four"), "found local four");
  expect_refused(price(text, file("none.weft", std::string(kCluster) + "DROP CLUSTER own")),
                 "does not create a cluster");
  expect_refused(price(text, file("wrong.weft", "CREATE CLUSTER c AS 2 NODES OF 4 DEVICES h100")),
                 "CREATE CLUSTER c AS");
  expect_refused(price(written(), "LOCAL 4"), "the mesh is rank=2, LOCAL 4 is rank=4");
  expect_refused(price(written(), {}, "rank=5000"), "does not name its cluster; its mesh is rank=5000");
  EXPECT_EQ(price(written(), "local 2").exit_code, ExitCode::ok);
}

TEST_F(Plans, DoesNotEstimateInvalidPlans) {
  expect_refused(price("TRAIN digits_mlp"), "not a plan");
  expect_refused(price(replaced(written(), "= contract ", "= contrakt ")), "contract");
  expect_refused(price(replaced(written(), "# mesh: ", "# mehs: ")), "does not state its mesh");
  EXPECT_EQ(run(PlanEstimate{.file = "nowhere.plan"}).exit_code, ExitCode::environment_error);
}

// The search, the rules and the proof all stop in time, and the report says what was skipped.
TEST(Seconds, EndAStatementWithTheBestPlanSoFar) {
  Session session;
  const Reply reply =
      session.execute("EXPLAIN (VERBOSE) TRAIN char_gpt ON pod WITH (planning_seconds = 0.001)");
  ASSERT_EQ(reply.exit_code, ExitCode::ok) << reply.complaint;
  const std::string output = std::regex_replace(reply.output, std::regex("\\s+"), " ");
  for (const std::string_view said :
       {"stopped: out of time", "not used: out of time", "not proven: out of time"})
    EXPECT_NE(output.find(said), std::string::npos) << said << "\n" << reply.output;
  // With enough time nothing is skipped.
  const Reply whole =
      session.execute("EXPLAIN (VERBOSE) TRAIN digits_mlp ON pod WITH (planning_seconds = 1000)");
  EXPECT_EQ(whole.output.find("out of time"), std::string::npos) << whole.output;
}

// The hint of the error is valid: the same statement passes with that batch size, and with that
// larger limit. For inference: training may use micro-batches, which nearly always fit.
TEST(WhatFits, MatchesTheHintOfTheError) {
  const auto statement = [](std::string_view batch, std::string_view limit) {
    return fmt::format(
        "EXPLAIN (SUMMARY) INFER digits_mlp ON pod WITH (b = {}, memory_limit = '{}', search_limit = 8, "
        "prove = false)",
        batch, limit);
  };
  Session session;
  const Reply refused = session.execute(statement("65536", "300 KiB"));
  ASSERT_EQ(refused.exit_code, ExitCode::user_error);
  ASSERT_TRUE(refused.error.has_value());
  std::smatch advice;
  ASSERT_TRUE(std::regex_match(refused.error->hint, advice,
                               std::regex("b = ([0-9]+) fits, or a memory_limit of ([0-9.]+ [KMGT]iB)")))
      << refused.error->hint;
  for (const std::string& advised :
       {statement(advice[1].str(), "300 KiB"), statement("65536", advice[2].str())}) {
    Session fresh;
    const Reply reply = fresh.execute(advised);
    EXPECT_EQ(reply.exit_code, ExitCode::ok) << advised << "\n" << reply.complaint;
  }
}

}  // namespace
}  // namespace weft::command
