// Sliced sends: ranks of a stage that hold equal data send one slice each. And CoCoNet's three
// schedules: found by the search, proven, and run with the loss of one rank.
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "session_case.h"
#include "thorough.h"
#include "weft/app/session/session.h"

namespace weft::session {
namespace {

using Json = nlohmann::json;

const std::string kLicense = WEFT_SOURCE_DIR "/LICENSE";  // a text that does not change

// 12 divides by 2 and by 3.
double gpt_loss(const std::string& on, const std::string& with) {
  Session session;
  return answer(session,
                fmt::format("TRAIN char_gpt FROM '{}' STEPS 6 {} WITH (b = 4, s = 12, d = 24, layers = "
                            "2, h = 6, learning_rate = 0.01, threads = 1, prove = false, {})",
                            kLicense, on, with))["last_loss"];
}

TEST(SliceSends, RanksTrainLikeOneRank) {
  struct Case {
    int ranks;
    const char* distribution;
  };
  const std::vector<Case> cases = {
      {4, "stage=2: stage; gpu=2: slice h, f; micro=2"},
      {6, "stage=2: stage; gpu=3: slice h, f; micro=4; schedule zb_h1"},
      {4, "stage=2: stage, chunks=2; gpu=2: slice f; micro=2; schedule interleaved"},
      {4, "stage=2: stage; gpu=2: slice f; micro=1"}};
  const double alone = gpt_loss("", "seed = 3");
  for (const Case& one : every(2, cases)) {
    SCOPED_TRACE(one.distribution);
    const auto loss = [&](const std::string& with) {
      return gpt_loss(
          fmt::format("ON LOCAL {}", one.ranks),
          fmt::format("seed = 3, transport = inproc, replica_check_every = 3, distribution = '{}'{}",
                      one.distribution, with));
    };
    const double sliced = loss(", scatter_gather_sends = true");
    EXPECT_NEAR(sliced, alone, 1e-4 * alone);
    EXPECT_EQ(sliced, loss(", scatter_gather_sends = true"));
    EXPECT_NEAR(loss(", scatter_gather_sends = true, codecs = 'activations: int8 always'"), alone,
                0.02 * alone);
  }
}

// The all-reduce before the stage boundary leaves each rank its slice: no extra gather is needed.
TEST(SliceSends, ThePlanStatesItAndIsProven) {
  const auto explain = [](const std::string& form, const std::string& with) {
    return fmt::format(
        "EXPLAIN {} TRAIN char_gpt ON LOCAL 4 WITH (b = 4, s = 12, d = 24, layers = 2, h = 6, "
        "distribution = 'stage=2: stage; gpu=2: slice h, f; micro=2', scatter_gather_sends = {})",
        form, with);
  };
  Session session;
  const Json sliced = answer(session, explain("", "true")), whole = answer(session, explain("", "false"));
  EXPECT_TRUE(sliced["proven"].get<bool>()) << sliced["proof"];
  EXPECT_EQ(sliced["slices"].get<std::string>().find("2 of 2 values are sent between stages in slices"), 0u)
      << sliced["slices"];
  EXPECT_NE(sliced["slices"].get<std::string>().find("left as reduce-scatter"), std::string::npos)
      << sliced["slices"];
  EXPECT_FALSE(whole.contains("slices"));
  const auto plan = [&](const std::string& with) {
    Session plain;
    return plain.execute(explain("(FORMAT plan)", with)).output;
  };
  EXPECT_NE(plan("true").find("reduce-scatter"), std::string::npos);
  EXPECT_EQ(plan("false").find("reduce-scatter"), std::string::npos);
}

Json on_pod(const std::string& with) {
  Session session;
  return answer(session, fmt::format("EXPLAIN TRAIN gpt2 ON pod WITH (b = 32, layers = 4, v = 5000, prove = "
                                     "false, {})",
                                     with));
}

// Between nodes, 8 GPUs send an eighth each; within a machine nothing is gained.
TEST(SliceSends, UsedWhereItPaysOff) {
  const std::string spread = "distribution = 'node=4: stage; gpu=8: slice f, v; micro=4'";
  const Json automatic = on_pod(spread), off = on_pod(spread + ", scatter_gather_sends = false");
  EXPECT_TRUE(automatic.contains("slices"));
  EXPECT_LT(automatic["step_seconds"].get<double>(), off["step_seconds"].get<double>());
}

std::string found_for(const std::string& statement) {
  Session session;
  const Json plan = answer(session, "EXPLAIN TRAIN " + statement);
  EXPECT_TRUE(plan["proven"].get<bool>()) << plan["proof"];
  return plan["plan"].get<std::string>();
}

// All-reduce, then Adam: each rank updates its slice. No setting requests it.
TEST(CoCoNet, SearchFindsShardedUpdates) {
  WEFT_LONG_TEST();
  EXPECT_NE(found_for("gpt2 ON ethernet WITH (b = 8, layers = 2, v = 5000)").find("slice b, shard optimizer"),
            std::string::npos);
}

// Product, all-reduce, residual: slices of the sequence between the products of a block.
TEST(CoCoNet, SearchFindsSlicedComputeBetweenProducts) {
  WEFT_LONG_TEST();
  EXPECT_NE(found_for("gpt3_175b ON dgx_h100 WITH (layers = 1, b = 4, v = 5000, s = 1024, d = 4096, h = 32, "
                      "precision = bf16)")
                .find("slice f, h, s"),
            std::string::npos);
}

// Stages whose ranks slice the sequence send one slice each.
TEST(CoCoNet, SearchFindsSlicedSendsBetweenStages) {
  WEFT_LONG_TEST();
  const std::string found = found_for("gpt3_175b ON pod WITH (layers = 8, b = 32, precision = bf16)");
  EXPECT_NE(found.find("stage"), std::string::npos) << found;
  EXPECT_NE(found.find("slice f, h, v, s"), std::string::npos) << found;
}

// The plans found, on ranks: each of the three, and all at once.
TEST(CoCoNet, FoundPlansTrainLikeOneRank) {
  struct Case {
    int ranks;
    const char* distribution;
  };
  const std::vector<Case> cases = {{8,
                                    "stage=2: stage, chunks=2; data=2: slice b, shard optimizer; gpu=2: "
                                    "slice f, h, v, s; micro=2; schedule "
                                    "zb_v"},
                                   {2, "rank=2: slice b, shard optimizer"},
                                   {2, "rank=2: slice f, h, v, s"}};
  const double alone = gpt_loss("", "seed = 3");
  for (const Case& one : every(2, cases))
    EXPECT_NEAR(
        gpt_loss(fmt::format("ON LOCAL {}", one.ranks),
                 fmt::format("seed = 3, transport = inproc, replica_check_every = 3, distribution = '{}'",
                             one.distribution)),
        alone, 1e-4 * alone)
        << one.distribution;
}

TEST(SliceSends, RejectsInvalidValues) {
  Session session;
  EXPECT_NE(complaint(session, "SET scatter_gather_sends = 8").find("automatic"), std::string::npos);
}

}  // namespace
}  // namespace weft::session
