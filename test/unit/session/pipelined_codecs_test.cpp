// Codecs in pipelined plans: each stage encodes the accumulated gradient once, and activations
// between stages where that is allowed.
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "session_case.h"
#include "temporary_folder.h"
#include "thorough.h"
#include "weft/app/session/session.h"

namespace weft::session {
namespace {

using Json = nlohmann::json;

const std::string kDigitsFile = WEFT_SOURCE_DIR "/examples/digits.csv.gz";
const std::string kTextFile = WEFT_SOURCE_DIR "/LICENSE";  // a text that does not change

double learned(const std::string& model, const std::string& file, int ranks, int steps,
               const std::string& with) {
  Session session;
  return answer(session, fmt::format("TRAIN {} FROM '{}' STEPS {} ON LOCAL {} WITH (transport = inproc, "
                                     "replica_check_every = 5, threads = 1, {})",
                                     model, file, steps, ranks, with))["last_loss"];
}

// check_every: replicas that are not bitwise equal would end the run. Includes odd sizes and odd
// numbers of ranks.
TEST(PipelinedCodecs, RanksTrainAsWithoutCodecsAndReproducibly) {
  struct Case {
    int ranks;
    const char* distribution;
  };
  const std::vector<Case> cases = {{3, "data=3: slice b; micro=2"},
                                   {4, "stage=2: stage; data=2: slice b; micro=4"},
                                   {3, "data=3: slice b, shard parameters; micro=4"},
                                   {2, "data=2: slice b, micro-batches 3:1; micro=2"},
                                   {4, "stage=2: stage; data=2: slice b; micro=1"}};
  for (const Case& one : every(3, cases)) {
    SCOPED_TRACE(one.distribution);
    const auto train = [&](const std::string& codecs) {
      return learned("digits_mlp", kDigitsFile, one.ranks, 30,
                     fmt::format("b = 48, f = 132, learning_rate = 0.01, codecs = '{}', distribution = '{}'",
                                 codecs, one.distribution));
    };
    const double exact = train("");
    ASSERT_LT(exact, 1.5);
    for (const std::string codecs : {"gradients: int8 always, weights: int8 always",
                                     "gradients: int4 with feedback always, activations: int8 always"}) {
      const double coded = train(codecs);
      EXPECT_NE(coded, exact) << codecs;
      EXPECT_NEAR(coded, exact, 0.1 * exact) << codecs;
      EXPECT_EQ(coded, train(codecs)) << codecs;
    }
  }
}

// Along an axis with one rank nothing is encoded, and results are bitwise equal to the plan without
// codecs.
TEST(PipelinedCodecs, OneRankPerStageEncodesNothing) {
  const auto train = [](const std::string& codecs) {
    return learned("digits_mlp", kDigitsFile, 2, 5,
                   fmt::format("b = 32, codecs = '{}', distribution = 'stage=2: stage; micro=4'", codecs));
  };
  EXPECT_EQ(train("gradients: int4 always, weights: int8 always"), train(""));
  EXPECT_NE(train("activations: int4 always"), train(""));
}

// Embeddings that the first and the last stage share, three stages of one rank, and a schedule with
// two chunks.
TEST(PipelinedCodecs, ATransformerSendsCodesBetweenStages) {
  const std::vector<std::string> cases = {"stage=3: stage; micro=4",
                                          "stage=2: stage, chunks=2; micro=4; schedule interleaved"};
  for (const std::string& distribution : every(1, cases)) {
    SCOPED_TRACE(distribution);
    const auto train = [&](const std::string& codecs) {
      return learned("char_gpt", kTextFile, distribution.starts_with("stage=3") ? 3 : 2, 15,
                     fmt::format("b = 8, s = 16, d = 32, layers = 3, h = 2, learning_rate = 0.003, prove = "
                                 "false, codecs = '{}', distribution = '{}'",
                                 codecs, distribution));
    };
    const double exact = train(""), coded = train("activations: int8 always");
    EXPECT_NE(coded, exact);
    EXPECT_NEAR(coded, exact, 0.02 * exact);
    EXPECT_EQ(coded, train("activations: int8 always"));
  }
}

// The stored error is saved with the stage that has it.
TEST(PipelinedCodecs, ContinuesFromAFileExactly) {
  const TemporaryFolder folder;
  const std::string file = folder / "half.safetensors";
  const auto statement = [](int steps) {
    return fmt::format(
        "TRAIN digits_mlp FROM '{}' STEPS {} ON LOCAL 4 WITH (b = 32, f = 132, transport = inproc, threads = "
        "1, codecs = 'gradients: int4 with feedback always', distribution = 'stage=2: stage; data=2: slice "
        "b; "
        "micro=2')",
        kDigitsFile, steps);
  };
  Session whole, half, rest;
  const Json all = answer(whole, statement(10));
  answer(half, fmt::format("{}; SAVE digits_mlp TO '{}'", statement(5), file));
  EXPECT_EQ(answer(rest, fmt::format("LOAD digits_mlp FROM '{}'; {}", file, statement(5)))["last_loss"],
            all["last_loss"]);
}

TEST(PipelinedCodecs, ExplainReportsBytesAndProof) {
  Session session;
  const Json plan = answer(session,
                           "EXPLAIN TRAIN digits_mlp ON LOCAL 4 WITH (b = 32, codecs = 'gradients: int8 "
                           "always, activations: bf16 always', distribution = 'stage=2: stage; data=2: slice "
                           "b; micro=4')");
  ASSERT_EQ(plan["codecs"].size(), 2u) << plan;
  const Json &gradients = plan["codecs"][0], &activations = plan["codecs"][1];
  EXPECT_EQ(gradients["what"], "gradients");
  EXPECT_GT(gradients["exchanges"].get<int>(), 0);
  EXPECT_LT(3 * gradients["code_bytes"].get<int>(), gradients["bytes"].get<int>());
  EXPECT_EQ(activations["what"], "activations");
  EXPECT_GE(activations["exchanges"].get<int>(), 2);  // forward and back
  EXPECT_EQ(2 * activations["code_bytes"].get<int>(), activations["bytes"].get<int>());
  EXPECT_TRUE(plan["proven"].get<bool>());
  EXPECT_EQ(plan["proof"].get<std::string>().find("proven equal up to codecs"), 0u) << plan["proof"];
}

TEST(PipelinedCodecs, WithoutStagesThereAreNoActivationCodecs) {
  Session session;
  const Json plan = answer(session,
                           "EXPLAIN TRAIN digits_mlp ON LOCAL 2 WITH (codecs = 'activations: int8 always', "
                           "distribution = 'rank=2: slice b')");
  ASSERT_EQ(plan["codecs"].size(), 1u);
  EXPECT_EQ(plan["codecs"][0]["what"], "activations");
  EXPECT_EQ(plan["codecs"][0]["exchanges"], 0);
}

// Between nodes, over slow links, codecs pay off; within a node they do not. The step is never
// slower than without.
TEST(PipelinedCodecs, AreUsedWhereTheyPayOff) {
  const auto explained = [](const std::string& on, const std::string& distribution,
                            const std::string& codecs) {
    Session session;
    return answer(session, fmt::format("EXPLAIN TRAIN gpt2 ON {} WITH (b = 32, layers = 4, v = 5000, prove = "
                                       "false, codecs = '{}', distribution = '{}')",
                                       on, codecs, distribution));
  };
  const std::string slow = "node_a=2: stage; node_b=4: slice b; micro=4";
  const Json exact = explained("ethernet", slow, ""),
             coded = explained("ethernet", slow, "gradients: int8 or int4, activations: int8");
  EXPECT_LT(coded["step_seconds"].get<double>(), exact["step_seconds"].get<double>());
  ASSERT_EQ(coded["codecs"].size(), 2u);
  EXPECT_GT(coded["codecs"][0]["exchanges"].get<int>(), 0);
}

}  // namespace
}  // namespace weft::session
