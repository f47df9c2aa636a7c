// Ranks with unequal numbers of micro-batches: together they compute the step of one device.
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "distribute_case.h"
#include "weft/parallel/pipeline/pipelined_plan.h"
#include "weft/parallel/pipeline/prove_pipelined.h"
#include "weft/parallel/pipeline/unroll.h"
#include "weft/plan/ops/operators.h"

namespace weft::pipeline {
namespace {

using distribute::DistributedPlan;
using distribute::Distribution;

const train::TrainingPlan& small_mlp() {
  static const train::TrainingPlan plan =
      distribute::training_plan("digits_mlp", {{"b", 24, {}}, {"p", 3, {}}, {"f", 4, {}}, {"c", 5, {}}});
  return plan;
}

const train::TrainingPlan& small_gpt() {
  static const train::TrainingPlan plan = distribute::training_plan(
      "char_gpt", {{"b", 16, {}}, {"s", 3, {}}, {"d", 4, {}}, {"h", 2, {}}, {"layers", 2, {}}, {"v", 4, {}}});
  return plan;
}

Result<DistributedPlan> taking(const plan::Graph& graph, std::string_view text) {
  WEFT_TRY(distribution, distribute::read_distribution(text));
  return distribute_pipelined(graph, distribution, {.smallest_share = 1});
}

// "" if it is proven.
std::string refuted(const plan::Graph& graph, std::string_view text) {
  const auto plan = taking(graph, text);
  if (!plan.ok()) return plan.error().message;
  const auto proof = prove_pipelined(graph, *plan);
  if (!proof.ok()) return proof.error().message;
  return proof->wrong ? proof->wrong->what : "";
}

TEST(UnequalMicroBatches, ComputeTheStepOfOneDevice) {
  for (const std::string_view text :
       {"data=2: slice b, micro-batches 5:3; micro=4", "data=2: slice b, micro-batches 1:7; micro=4",
        "data=2: slice b, micro-batches 4:4; micro=4", "data=3: slice b, micro-batches 1:2:3; micro=2",
        "data=4: slice b, micro-batches 1:2:1:4; micro=2", "data=2: slice b, micro-batches 1:5; micro=3",
        "data=2: slice b, shard optimizer, micro-batches 3:1; micro=2",
        "data=2: slice b, shard parameters, micro-batches 3:1; micro=2"})
    EXPECT_EQ(refuted(small_mlp().graph, text), "") << text;
}

TEST(UnequalMicroBatches, CombineWithOtherAxesInAnyOrder) {
  for (const std::string_view text :
       {"data=2: slice b, micro-batches 3:1; gpu=2: slice f; micro=2",
        "gpu=2: slice f; data=2: slice b, micro-batches 3:1; micro=2",
        "data=2: slice b, micro-batches 3:1; other=2: slice b; micro=2",
        "other=2: slice b; data=2: slice b, micro-batches 3:1; micro=2",
        "other=2: slice b, shard parameters; data=2: slice b, micro-batches 1:3; gpu=2: slice f; micro=2"})
    EXPECT_EQ(refuted(small_mlp().graph, text), "") << text;
  EXPECT_EQ(
      refuted(small_gpt().graph, "data=2: slice b, micro-batches 3:1; gpu=2: slice h, f, v, s; micro=2"), "");
}

TEST(UnequalMicroBatches, CombineWithStages) {
  for (const std::string_view schedule : {"gpipe", "1f1b", "zb_h1", "zb_h2", "zb_v", "dualpipe"})
    EXPECT_EQ(refuted(small_gpt().graph,
                      fmt::format("data=2: slice b, micro-batches 5:3; stage=2: stage; micro=4; schedule {}",
                                  schedule)),
              "")
        << schedule;
  EXPECT_EQ(refuted(small_gpt().graph, "stage=2: stage; data=2: slice b, micro-batches 1:3; micro=2"), "");
}

// A value sliced by the batch only along the unequal axis, such as positions in the batch, differs
// per micro-batch: a rank runs rows that other ranks would hold under equal numbers.
TEST(UnequalMicroBatches, UseThePositionsOfTheirRows) {
  const train::TrainingPlan placed = distribute::training_plan(
      "CREATE MODEL placed (b = 24, p = 3, c = 4)\n"
      "  INPUT x[b, p], label[b] OF int32\n"
      "  PARAMETER w[p, c] INIT normal(0, 0.1)\n"
      "AS WITH logits AS (SELECT sum(x * w) * (1 + b / 10) FROM x, w GROUP BY b, c)\n"
      "SELECT mean(cross_entropy(logits, label) OVER (PARTITION BY b)) AS loss FROM logits, label;");
  for (const std::string_view text :
       {"data=2: slice b; micro=2", "data=2: slice b, micro-batches 3:1; micro=2",
        "data=2: slice b, micro-batches 1:7; micro=4", "data=3: slice b, micro-batches 1:2:3; micro=2",
        "data=2: slice b, shard optimizer, micro-batches 3:1; micro=2",
        "other=2: slice b; data=2: slice b, micro-batches 3:1; micro=2"})
    EXPECT_EQ(refuted(placed.graph, text), "") << text;
}

// Every micro-batch runs once, and a rank holds the rows of its micro-batches.
TEST(UnequalMicroBatches, RanksHoldTheRowsOfTheirMicroBatches) {
  const auto made =
      taking(small_mlp().graph, "data=3: slice b, micro-batches 3:1:2; gpu=2: slice b; micro=2");
  ASSERT_TRUE(made.ok()) << made.error().message;
  plan::NodeId input;
  for (std::size_t n = 0; n < made->graph.node_count(); ++n)
    if (const plan::NodeView node = made->graph.view(plan::NodeId(n));
        &node.op() == &ops::input() && node.word(0) == "pixels")
      input = node.id();
  ASSERT_TRUE(input.valid());
  // The halves of gpu, in each of which micro-batches have two rows.
  const std::vector<plan::Share> wanted = {{0, 6}, {12, 6}, {6, 2}, {18, 2}, {8, 4}, {20, 4}};
  for (std::int32_t rank = 0; rank < 6; ++rank) {
    const plan::Share rows = pipelined_shares(*made, input, rank).front();
    EXPECT_EQ(rows.begin, wanted[static_cast<std::size_t>(rank)].begin) << rank;
    EXPECT_EQ(rows.size, wanted[static_cast<std::size_t>(rank)].size) << rank;
  }
}

TEST(UnequalMicroBatches, FitFewerMicroBatches) {
  auto distribution = *distribute::read_distribution("data=2: slice b, micro-batches 12:4; micro=8");
  distribution.micro_batches = 2;
  fit_micro_batches(distribution);
  EXPECT_EQ(distribution.axes.front().takes, (std::vector<std::int64_t>{3, 1}));
  // Unequal numbers stay unequal, and equal ones equal.
  distribution.axes.front().takes = {5, 3};
  fit_micro_batches(distribution);
  EXPECT_EQ(distribution.axes.front().takes, (std::vector<std::int64_t>{3, 1}));
  distribution.axes.front().takes = {4, 4};
  fit_micro_batches(distribution);
  EXPECT_EQ(distribution.axes.front().takes, (std::vector<std::int64_t>{2, 2}));
  distribution.mesh.axes.front().ranks = 3;
  fit_micro_batches(distribution);
  const std::vector<std::int64_t>& takes = distribution.axes.front().takes;
  EXPECT_EQ(takes.size(), 3U);
  EXPECT_EQ(std::accumulate(takes.begin(), takes.end(), std::int64_t{0}), 6);
}

TEST(UnequalMicroBatches, ReportInvalidCombinations) {
  const auto why = [](std::string_view text) { return refuted(small_mlp().graph, text); };
  EXPECT_EQ(why("data=2: slice b, micro-batches 5:4; micro=4"),
            "ranks along data take 9 micro-batches, and with micro=4 there are 2 x 4");
  EXPECT_EQ(why("data=2: slice b, micro-batches 1000000:1000000; micro=4"),
            "ranks along data take 2000000 micro-batches, and with micro=4 there are 2 x 4");
  EXPECT_EQ(why("data=2: slice b, micro-batches 5:3"),
            "ranks along data have 8 micro-batches, but micro=N is missing");
  EXPECT_EQ(why("data=2: slice b, micro-batches 1:1"),
            "ranks along data have 2 micro-batches, but micro=N is missing");
  EXPECT_EQ(why("data=2: slice f, micro-batches 5:3; micro=4"),
            "ranks along data take unequal numbers of micro-batches, and it does not slice b");
  EXPECT_EQ(why("data=2: slice b, micro-batches 3:1; node=2: slice b, micro-batches 3:1; micro=2"),
            "ranks take unequal numbers of micro-batches along one axis, found data and node");
  EXPECT_EQ(why("data=2: slice b, micro-batches 9:5; micro=7"),
            "b = 24 cannot be split into 7 micro-batches on each of 2 ranks");
  // A rank with a single micro-batch uses only one direction of the pipeline and holds half of what
  // others hold.
  EXPECT_EQ(refuted(small_gpt().graph,
                    "data=2: slice b, micro-batches 7:1; stage=2: stage; micro=4; schedule dualpipe"),
            "with 1, schedule dualpipe puts its parts on other stages than with 4");
}

// Along an axis with unequal numbers, only the batch is sliced.
TEST(UnequalMicroBatches, SliceTheBatchOnly) {
  for (const std::string_view slice : {"p, b", "f, b"})
    EXPECT_NE(refuted(small_mlp().graph, fmt::format("data=2: slice {}, micro-batches 3:1; micro=2", slice))
                  .find("needs the whole batch at once"),
              std::string::npos)
        << slice;
}

// -- wrong plans --------------------------------------------------------------------------------------

class WrongMicroBatches : public ::testing::Test {
 protected:
  void SetUp() override {
    auto made = taking(small_mlp().graph, "data=2: slice b, micro-batches 3:1; micro=2");
    ASSERT_TRUE(made.ok()) << made.error().message;
    plan_ = std::move(*made);
    for (std::int32_t rank = 0; rank < 2; ++rank) ranks_.push_back(std::move(unroll(*plan_, rank)->graph));
  }

  std::string proven() const {
    const std::vector<const plan::Graph*> both = {&ranks_[0], &ranks_[1]};
    const auto proof = prove_ranks(small_mlp().graph, *plan_, both, 1);
    EXPECT_TRUE(proof.ok()) << (proof.ok() ? "" : proof.error().message);
    return proof.ok() && proof->wrong ? proof->wrong->what : std::string();
  }

  std::optional<DistributedPlan> plan_;
  std::vector<plan::Graph> ranks_;
};

// Each sum of a rank, one at a time, counts one operand twice and the other not at all.
TEST_F(WrongMicroBatches, RejectAGradientCountedTwice) {
  EXPECT_EQ(proven(), "");
  int changed = 0, found = 0;
  for (plan::Graph& rank : ranks_) {
    const plan::Graph sound = rank.clone();
    const std::string text = plan::print(sound);
    for (std::size_t n = 0; n < sound.node_count(); ++n) {
      const plan::NodeView node = sound.view(plan::NodeId(n));
      if (node.op().name() != "add" || node.input_count() != 2 || node.input(0) == node.input(1)) continue;
      if (sound.value(node.input(0)).type != sound.value(node.input(1)).type) continue;
      if (node.result_type(0).rank() == 0) continue;  // step + 1 equals step + step if step is 1
      const std::string begins = fmt::format("%{} = add %{}, %", node.result(0).value, node.input(0).value);
      const auto at = text.find(begins + fmt::format("{}", node.input(1).value));
      if (at == std::string::npos) continue;
      std::string other = text;
      other.replace(at + begins.size(), fmt::format("{}", node.input(1).value).size(),
                    fmt::format("{}", node.input(0).value));
      auto read = plan::read(other, ops::all());
      if (!read.ok()) continue;
      rank = std::move(*read);
      ++changed;
      found += proven().empty() ? 0 : 1;
    }
    rank = sound.clone();
  }
  EXPECT_GE(changed, 2);
  EXPECT_EQ(found, changed);
}

// The mean over a rank's own rows gives too much weight to ranks with few rows.
TEST_F(WrongMicroBatches, RejectAGradientWeightedByLocalCounts) {
  int changed = 0;
  for (plan::Graph& rank : ranks_) {
    const plan::Graph sound = rank.clone();
    for (std::size_t n = 0; n < sound.node_count(); ++n) {
      // The count of labels over all ranks becomes that of this rank.
      const plan::NodeView node = sound.view(plan::NodeId(n));
      if (node.op().name() != "maximum") continue;
      const plan::NodeView all = sound.view(sound.value(node.input(0)).producer);
      ASSERT_EQ(all.op().name(), "exchange");
      std::string text = plan::print(sound);
      const std::string was = fmt::format("maximum %{}, ", node.input(0).value);
      const auto at = text.find(was);
      ASSERT_NE(at, std::string::npos);
      text.replace(at, was.size(), fmt::format("maximum %{}, ", all.input(0).value));
      auto read = plan::read(text, ops::all());
      ASSERT_TRUE(read.ok()) << read.error().message;
      rank = std::move(*read);
      ++changed;
      EXPECT_NE(proven(), "");
    }
    rank = sound.clone();
  }
  EXPECT_EQ(changed, 2);
  EXPECT_EQ(proven(), "");
}

// A rank that runs another rank's micro-batches instead of its own.
TEST_F(WrongMicroBatches, RejectARankThatRunsAnothersRows) {
  const auto turned = taking(small_mlp().graph, "data=2: slice b, micro-batches 1:3; micro=2");
  ASSERT_TRUE(turned.ok());
  const std::vector<const plan::Graph*> ranks = {&ranks_[0], &ranks_[1]};
  const auto proof = prove_ranks(small_mlp().graph, *turned, ranks, 1);
  EXPECT_TRUE(!proof.ok() || proof->wrong);
}

}  // namespace
}  // namespace weft::pipeline
