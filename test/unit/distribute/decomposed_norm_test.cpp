// Batch norms with a sliced batch or image: each rank sums its own elements, and only per-channel
// numbers are reduced.
#include "distribute_case.h"

#include <cmath>

#include "ops_case.h"
#include "weft/parallel/distribute/decompose_nodes.h"
#include "weft/parallel/distribute/prove.h"
#include "weft/parallel/distribute/replay.h"
#include "weft/plan/graph/text.h"
#include "weft/plan/spmd/decompose_rows.h"

namespace weft::distribute {
namespace {

using ops::Field;

plan::Graph with_open_norms(const plan::Graph& graph) {
  std::vector<plan::NodeId> nodes;
  for (std::size_t n = 0; n < graph.node_count(); ++n)
    if (graph.node(plan::NodeId(n)).op == &ops::batch_norm()) nodes.push_back(plan::NodeId(n));
  auto made = decompose_nodes(graph, nodes);
  if (!made.ok()) throw std::runtime_error(made.error().message);
  return std::move(*made);
}

bool close(double a, double b) { return std::abs(a - b) <= 1e-11 * (1 + std::abs(a)); }
bool close(Field a, Field b) { return a == b; }

template <class T>
void expect_all_results_same(const ops::Case& c, std::uint64_t seed) {
  ops::Numbers<T> numbers;
  if constexpr (std::is_same_v<T, Field>) numbers.key = seed;
  Random random(seed);
  const plan::Graph graph = ops::graph_of(c), open = with_open_norms(graph);
  ASSERT_GT(open.node_count(), graph.node_count());
  const auto inputs = ops::random_inputs<T>(c, graph, numbers, random);
  const auto expected = ops::outputs_of<T>(graph, inputs, numbers),
             found = ops::outputs_of<T>(open, inputs, numbers);
  ASSERT_EQ(expected.size(), 4u);  // y, both updated statistics, and the scale for the gradient
  ASSERT_EQ(found.size(), 4u);
  for (std::size_t o = 0; o < expected.size(); ++o) {
    ASSERT_EQ(found[o].sizes, expected[o].sizes) << ops::text_of(c);
    for (std::size_t i = 0; i < expected[o].data.size(); ++i)
      ASSERT_TRUE(close(expected[o].data[i], found[o].data[i])) << ops::text_of(c) << o << " " << i;
  }
}

TEST(DecomposedNorm, MatchesTheOperator) {
  const std::vector<ops::Case> cases = ops::read_cases(R"(
batch-norm:4 | f32[b=3,c=2,h=2,w=3] | f32[c=2] | f32[c=2] > 0 | {over=[b,h,w]}
batch-norm:4 | f32[c=2,h=4,b=3] | f32[c=2] | f32[c=2] > 0 | {over=[b,h], momentum=0.3}
batch-norm:4 | f32[b=1,c=3] | f32[c=3] | f32[c=3] > 0 | {over=[b], epsilon=0.5}
batch-norm:4 | f32[b=5] | f32[] | f32[] > 0 | {over=[b]}
batch-norm:4 | f32[b=3,c=2,g=2] | f32[g=2,c=2] | f32[c=2,g=2] > 0 | {over=[b]}
batch-norm:4 | bf16[b=3,c=2] | bf16[c=2] | bf16[c=2] > 0 | {over=[b]}
batch-norm:4 | f32[b=3,c=2,h=4] | f32[c=2] | f32[c=2] > 0 | {over=[b,h], mode=infer}
batch-norm:4 | f32[b=3,c=2,g=2] | f32[g=2,c=2] | f32[c=2,g=2] > 0 | {over=[b], mode=infer, momentum=0.3}
)");
  ASSERT_EQ(cases.size(), 8u);
  for (const ops::Case& c : cases)
    for (const std::uint64_t seed : {1, 2, 3}) {
      expect_all_results_same<Field>(c, seed);
      expect_all_results_same<double>(c, seed);
    }
}

// The mean of squares minus the square of the mean would give a variance of 0 or less in f32.
TEST(DecomposedNorm, KeepsTheVarianceOfABatchFarFromZero) {
  const plan::Graph graph = ops::read_plan(
      "plan norm\n"
      "%0 = input {name=x, type=f32[b=4,c=1]}\n"
      "%1 = input {name=mean, type=f32[c=1]}\n"
      "%2 = input {name=variance, type=f32[c=1]}\n"
      "%3, %4, %5, %6 = batch-norm %0, %1, %2 {over=[b]}\n"
      "return y=%3\n");
  ops::Tensors<float> inputs;
  inputs["x"] = {{4, 1}, {10001, 10002, 10003, 10004}};
  inputs["mean"] = {{1}, {0}};
  inputs["variance"] = {{1}, {1}};
  const auto found = ops::outputs_of<float>(with_open_norms(graph), inputs, {});
  const float expected[] = {-1.3416354f, -0.44721183f, 0.44721183f, 1.3416354f};
  for (std::size_t b = 0; b < 4; ++b) EXPECT_FLOAT_EQ(found[0].data[b], expected[b]);
}

constexpr std::string_view kNet =
    "CREATE MODEL net (b = 6, c = 2, y = 6, x = 4, m = 4, r = 3, q = 3, classes = 4) "
    "INPUT image[b, c, y, x], label[b] OF int32 "
    "PARAMETER k1[m, c, r, q] INIT normal(0, 0.4), gain[m] INIT ones, bias[m], w[m, classes] INIT normal(0, "
    "0.3) "
    "STATE mean[m], variance[m] INIT ones "
    "AS WITH "
    "conv AS (SELECT conv2d(image, k1, padding => 1) FROM image, k1), "
    "norm AS (SELECT relu(batch_norm(conv, mean, variance) OVER (PARTITION BY m) * gain + bias) "
    "         FROM conv, mean, variance, gain, bias), "
    "pooled AS (SELECT mean(norm) FROM norm GROUP BY b, m), "
    "logits AS (SELECT sum(pooled * w) FROM pooled, w GROUP BY b, classes) "
    "SELECT mean(cross_entropy(logits, label) OVER (PARTITION BY b)) AS loss FROM logits, label";

const train::TrainingPlan& net() {
  static const train::TrainingPlan plan = training_plan(kNet, {}, train::Optimizer::sgd);
  return plan;
}

// The bytes of the largest communicated value.
std::int64_t largest_moved(const DistributedPlan& plan) {
  std::int64_t largest = 0;
  for (std::size_t n = 0; n < plan.graph.node_count(); ++n) {
    const plan::NodeView node = plan.graph.view(plan::NodeId(n));
    if (ops::find_communication(node.op()) != nullptr && node.op().name() != "slice-across")
      largest = std::max(largest, node.result_type(0).bytes());
  }
  return largest;
}

TEST(DecomposedNorm, DataParallelCommunicatesGradientsAndStatistics) {
  const DistributedPlan plan = distributed(net(), "gpu=2: slice b");
  EXPECT_EQ(plan.opened.size(), 1u);
  EXPECT_EQ(count(plan, "batch-norm"), 0);
  EXPECT_EQ(count(plan, "all-gather") + count(plan, "all-to-all") + count(plan, "reduce-scatter"), 0);
  EXPECT_EQ(count(plan, "all-reduce", plan::Phase::forward), 2 + 2);  // mean, variance; loss, row count
  // k1, gain, bias and w, and two means for the norm's gradient.
  EXPECT_EQ(count(plan, "all-reduce") - count(plan, "all-reduce", plan::Phase::forward), 4 + 2);
  EXPECT_EQ(largest_moved(plan), 4 * 2 * 3 * 3 * 4);  // k1: no activation
  EXPECT_EQ(layout(plan, "mean"), "replicated");
}

TEST(DecomposedNorm, TheSameLossStepAndRunningStatistics) {
  for (const std::string_view text :
       {"gpu=2: slice b", "gpu=4: slice b", "gpu=6: slice b", "gpu=2: slice y", "gpu=3: slice y",
        "gpu=2: slice b, m", "node=2: slice b; gpu=3: slice b", "node=2: slice b; gpu=2: slice y",
        "node=2: slice m; gpu=2: slice b", "node=2: slice b; gpu=2: slice m",
        "node=2: slice b, shard parameters; gpu=3: slice b, shard optimizer"}) {
    const DistributedPlan plan = distributed(net(), text);
    EXPECT_FALSE(plan.opened.empty()) << text;
    EXPECT_EQ(difference<Field>(net().graph, plan), "") << text;
    const auto proof = prove(net().graph, plan, {.draws = 1});
    ASSERT_TRUE(proof.ok()) << text << ": " << proof.error().message;
    EXPECT_TRUE(proof->holds()) << text << ": " << proof->wrong->what;
  }
}

TEST(DecomposedNorm, IsNotDecomposedIfTheBatchIsNotSliced) {
  for (const std::string_view text :
       {"gpu=2: slice m", "gpu=2: slice m, b", "gpu=7: slice b", "gpu=1: slice b"}) {
    const DistributedPlan plan = distributed(net(), text);
    EXPECT_TRUE(plan.opened.empty()) << text;
    EXPECT_EQ(count(plan, "batch-norm"), 1) << text;
  }
}

// An axis without a list; one tensor's batch is sliced by an exception.
TEST(DecomposedNorm, IsDecomposedWhereAnExceptionSlicesIt) {
  const DistributedPlan plan = distributed(net(), "gpu=2; slice b of norm on gpu");
  EXPECT_EQ(plan.opened.size(), 1u);
  EXPECT_EQ(difference<Field>(net().graph, plan), "");
}

// Sums in 16 bits accumulate in f32, a type that no value of the model has; that is no extra
// rounding.
TEST(DecomposedNorm, HalfPrecisionAccumulatesInF32) {
  for (const plan::DType precision : {plan::DType::bf16, plan::DType::f16}) {
    const train::TrainingPlan half = training_plan(kNet, {}, train::Optimizer::sgd, precision);
    const DistributedPlan plan = distributed(half, "gpu=2: slice b");
    const auto proof = prove(half.graph, plan, {.draws = 1});
    ASSERT_TRUE(proof.ok()) << proof.error().message;
    EXPECT_TRUE(proof->holds()) << proof->wrong->what;
  }
}

// Statistics of only one rank's images: as if the two all-reduces were missing.
TEST(DecomposedNorm, StatisticsOfOneRankAreRefuted) {
  DistributedPlan plan = distributed(net(), "gpu=2: slice b");
  std::string text = plan::print(plan.graph);
  const std::size_t at = text.find("all-reduce");
  ASSERT_NE(at, std::string::npos);
  text.replace(at, 10, "permute-ranks");  // each rank has the other's partial sums
  const std::size_t axis = text.find("{axis=gpu}", at);
  text.replace(axis, 10, "{axis=gpu, by=1}");
  plan.graph = ops::read_plan(text);
  const auto proof = prove(net().graph, plan, {.draws = 1});
  EXPECT_TRUE(!proof.ok() || !proof->holds());
}

TEST(DecomposedNorm, IsReplayedAtOtherSizes) {
  const train::TrainingPlan large = training_plan(
      kNet, {{"b", 64, {}}, {"y", 32, {}}, {"x", 24, {}}, {"m", 16, {}}}, train::Optimizer::sgd);
  const DistributedPlan plan = distributed(large, "node=4: slice b; gpu=8: slice b");
  ASSERT_EQ(plan.opened.size(), 1u);
  const auto replayed = replay(plan, large.graph, net().graph, {{{"node", 2}, {"gpu", 3}}});
  ASSERT_TRUE(replayed.ok()) << replayed.error().message;
  const auto proof = prove(net().graph, *replayed, {.draws = 1});
  ASSERT_TRUE(proof.ok()) << proof.error().message;
  EXPECT_TRUE(proof->holds()) << proof->wrong->what;
}

}  // namespace
}  // namespace weft::distribute
