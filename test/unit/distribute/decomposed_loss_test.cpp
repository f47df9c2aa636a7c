// Losses and softmax over a sliced index: decomposed, they compute the same, on one device and on a
// mesh.
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

plan::Graph opened(const plan::Graph& graph) {
  std::vector<plan::NodeId> nodes;
  for (std::size_t n = 0; n < graph.node_count(); ++n)
    if (const plan::NodeView node = graph.view(plan::NodeId(n));
        !ops::is_source(node.op()) && !spmd::decomposable_rows(node).empty())
      nodes.push_back(node.id());
  auto made = decompose_nodes(graph, nodes);
  if (!made.ok()) throw std::runtime_error(made.error().message);
  return std::move(*made);
}

bool same(double a, double b) { return std::abs(a - b) <= 1e-12 * (1 + std::abs(a)); }
bool same(Field a, Field b) { return a == b; }

template <class T>
void expect_same_open(const ops::Case& c, std::uint64_t seed) {
  ops::Numbers<T> numbers;
  if constexpr (std::is_same_v<T, Field>) numbers.key = seed;
  Random random(seed);
  const plan::Graph graph = ops::graph_of(c), open = opened(graph);
  ASSERT_GT(open.node_count(), graph.node_count());
  const auto inputs = ops::random_inputs<T>(c, graph, numbers, random);
  const auto expected = ops::outputs_of<T>(graph, inputs, numbers),
             found = ops::outputs_of<T>(open, inputs, numbers);
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t k = 0; k < expected.size(); ++k) {
    ASSERT_EQ(found[k].sizes, expected[k].sizes) << ops::text_of(c);
    for (std::size_t i = 0; i < expected[k].data.size(); ++i)
      ASSERT_TRUE(same(expected[k].data[i], found[k].data[i])) << ops::text_of(c) << k << ' ' << i;
  }
}

// Labels run from -1 to one past the classes: rows with labels out of range are ignored.
TEST(DecomposedRows, MatchTheOperators) {
  const std::vector<ops::Case> cases = ops::read_cases(R"(
cross-entropy | f32[b=3,s=4,v=5] | i32[b=3,s=4] < 6 | {over=v}
cross-entropy | f32[v=5,b=3] | i64[b=3] < 6 | {over=v}
cross-entropy | f32[b=3,v=5,s=4] | i32[s=4,b=3] < 6 | {over=v}
cross-entropy | f32[v=1] | i32[] < 2 | {over=v}
cross-entropy | bf16[b=3,v=5] | i32[b=3] < 6 | {over=v}
cross-entropy | f64[b=3,v=5] | i64[b=3] < 6 | {over=v}
cross-entropy | f32[b=3,v=5] | i32[b=3] < 6 | {over=v, smoothing=0.3}
cross-entropy-gradient | f32[b=3,v=5] | i32[b=3] < 6 | f32[b=3] | {over=v, smoothing=0.3}
cross-entropy-gradient | f32[b=3,s=4,v=5] | i32[b=3,s=4] < 6 | f32[b=3,s=4] | {over=v}
cross-entropy-gradient | f32[v=5,b=3,s=2] | i32[s=2,b=3] < 6 | f32[b=3,s=2] | {over=v}
cross-entropy-gradient | f64[b=3,v=5] | i32[b=3] < 6 | f64[b=3] | {over=v}
cross-entropy-gradient | bf16[b=3,v=5] | i32[b=3] < 6 | bf16[b=3] | {over=v}
linear-cross-entropy:3 | f32[b=3,s=2,d=4] | f32[v=5,d=4] | i32[s=2,b=3] < 6 | {over=v, inner=[d]}
linear-cross-entropy:4 | f32[b=3,s=2,d=4] | f32[v=5,d=4] | i32[s=2,b=3] < 6 | f32[v=5] | {over=v, inner=[d]}
linear-cross-entropy | f32[b=3,s=2,d=4] | f32[v=5,d=4] | i32[s=2,b=3] < 6 | {over=v, inner=[d], slopes=0}
linear-cross-entropy:3 | bf16[b=3,d=4] | bf16[d=4,v=5] | i64[b=3] < 6 | {over=v, inner=[d], smoothing=0.3}
softmax | f32[b=2,h=3,s=4,t=5] | {over=[t]}
softmax | f32[t=5,b=2,u=3] | {over=[u,t]}
softmax | f16[t=5] | {over=[t]}
)");
  ASSERT_EQ(cases.size(), 19u);
  for (const ops::Case& c : cases)
    for (const std::uint64_t seed : {1, 2, 3}) {
      expect_same_open<Field>(c, seed);
      expect_same_open<double>(c, seed);
    }
}

// A plan that computes in f64 compares labels in f64: no value has fewer bits.
TEST(DecomposedRows, KeepTheTypeOfTheirRows) {
  const plan::Graph one = ops::read_plan(
      "plan rows\n"
      "%0 = input {name=x, type=f64[b=4,v=6]}\n"
      "%1 = input {name=label, type=i32[b=4]}\n"
      "%2 = cross-entropy %0, %1 {over=v}\n"
      "%3 = reduce %2 {kind=sum, to=[]}\n"
      "return loss=%3\n");
  for (const std::string_view text : {"gpu=2: slice v", "gpu=2: slice v, b"}) {
    const auto plan = distribute(one, read_distribution(text).value(), {.smallest_share = 1});
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    const auto proof = prove(one, *plan);
    ASSERT_TRUE(proof.ok()) << proof.error().message;
    EXPECT_TRUE(proof->holds()) << text << ": " << proof->wrong->what;
  }
}

TEST(DecomposedRows, DoNotOverflow) {
  const plan::Graph graph = ops::read_plan(
      "plan rows\n"
      "%0 = input {name=x, type=f32[b=4,v=3]}\n"
      "%1 = input {name=label, type=i32[b=4]}\n"
      "%2 = softmax %0 {over=[v]}\n"
      "%3 = cross-entropy %0, %1 {over=v}\n"
      "return y=%2, loss=%3\n");
  constexpr float kNone = -std::numeric_limits<float>::infinity();
  ops::Tensors<float> inputs;
  inputs["x"] = {{4, 3}, {1e4f, 1e4f, -1e4f, -1e4f, -1e4f, -1e4f, kNone, 2, kNone, kNone, kNone, kNone}};
  inputs["label"] = {{4}, {0, 1, 1, -1}};
  const auto expected = ops::outputs_of<float>(graph, inputs, {}),
             found = ops::outputs_of<float>(opened(graph), inputs, {});
  EXPECT_EQ(found[0].data, expected[0].data);  // a row without any visible element is zero
  EXPECT_EQ(found[0].data[9], 0);
  for (std::size_t b = 0; b < 4; ++b) EXPECT_FLOAT_EQ(found[1].data[b], expected[1].data[b]);
  EXPECT_EQ(found[1].data[3], 0);  // ignored, whatever its logits are
}

// Plain gradient descent, which divides by nothing that rounding could make small.
const train::TrainingPlan& gpt() {
  static const train::TrainingPlan plan = training_plan(
      "char_gpt", {{"b", 2, {}}, {"s", 4, {}}, {"d", 4, {}}, {"h", 2, {}}, {"layers", 1, {}}, {"v", 6, {}}},
      train::Optimizer::sgd);
  return plan;
}

// The largest difference of any output, the loss and all updated parameters, from those of one
// device.
double distance(const plan::Graph& one_device, const DistributedPlan& plan) {
  const ops::Numbers<double> numbers;
  Random random(1);
  const auto inputs = ops::spread<double>(plan.graph, plan.mesh, {}, plan.layouts, numbers, random);
  const auto expected = ops::outputs_of<double>(one_device, inputs.whole, numbers);
  const auto found = spmd::interpret_on_mesh<double>(
      plan.graph, plan.mesh, [&](std::string_view name) { return &inputs.held.find(name)->second; }, numbers);
  if (!found.ok()) throw std::runtime_error(found.error().message);
  double largest = 0;
  for (std::size_t o = 0; o < expected.size(); ++o) {
    const plan::Type type = plan.graph.type(plan.graph.outputs()[o].value);
    const auto joined = spmd::join_from_mesh((*found)[o], type, plan.mesh, numbers);
    if (!joined.ok()) throw std::runtime_error(joined.error().message);
    for (std::size_t i = 0; i < expected[o].data.size(); ++i) {
      const double apart =
          std::abs(expected[o].data[i] - joined->data[i]) / (1 + std::abs(expected[o].data[i]));
      if (!(apart <= largest)) largest = apart;  // NaN stays NaN
    }
  }
  return largest;
}

bool moves_logits(const DistributedPlan& plan) {
  for (std::size_t n = 0; n < plan.graph.node_count(); ++n) {
    const plan::NodeView node = plan.graph.view(plan::NodeId(n));
    const Symbol v = plan.graph.symbols().find("v");
    const plan::Type type = node.result_count() > 0 ? node.result_type(0) : plan::Type{};
    if (ops::find_communication(node.op()) != nullptr && node.op().name() != "slice-across" &&
        type.rank() == 3 && type.has(v))
      return true;
  }
  return false;
}

TEST(DecomposedLoss, TensorParallelKeepsTheVocabularySliced) {
  const DistributedPlan plan = distributed(gpt(), "gpu=2: slice h, f, v");
  EXPECT_EQ(plan.opened.size(), 2u);
  EXPECT_EQ(count(plan, "cross-entropy") + count(plan, "cross-entropy-gradient"), 0);
  EXPECT_FALSE(moves_logits(plan));
  EXPECT_EQ(count(plan, "all-gather"), 0);
  // The maximum, sum and picked logit of each row, besides one all-reduce per sublayer and one for
  // the embedding.
  EXPECT_EQ(count(plan, "all-reduce", plan::Phase::forward), 2 + 1 + 3);
  // Maxima and sums are kept for the gradient.
  EXPECT_EQ(count(plan, "reduce", plan::Phase::backward),
            count(distributed(gpt(), "gpu=2: slice h, f"), "reduce", plan::Phase::backward));
}

TEST(DecomposedLoss, TheSameLossAndTheSameStep) {
  for (const std::string_view text :
       {"gpu=2: slice h, f, v", "gpu=2: slice h, f, v, s", "gpu=3: slice v", "gpu=4: slice v, b",
        "gpu=6: slice v", "node=2: slice b; gpu=2: slice h, f, v", "node=2: slice v; gpu=2: slice v",
        "node=2: slice b, shard parameters; gpu=3: slice v", "node=2: slice s; gpu=2: slice v"}) {
    const DistributedPlan plan = distributed(gpt(), text);
    EXPECT_FALSE(plan.opened.empty()) << text;
    EXPECT_EQ(difference<Field>(gpt().graph, plan), "") << text;
    EXPECT_LE(distance(gpt().graph, plan), 1e-12) << text;
    const auto proof = prove(gpt().graph, plan, {.draws = 1});
    ASSERT_TRUE(proof.ok()) << text << ": " << proof.error().message;
    EXPECT_TRUE(proof->holds()) << text << ": " << proof->wrong->what;
  }
}

TEST(DecomposedLoss, IsNotDecomposedIfItsIndexIsNotSliced) {
  for (const std::string_view text : {"gpu=2: slice h, f", "gpu=2: slice b", "gpu=2: slice s, v",
                                      "gpu=2: slice b, v", "gpu=1: slice v", "gpu=7: slice v"}) {
    const DistributedPlan plan = distributed(gpt(), text);
    EXPECT_TRUE(plan.opened.empty()) << text;
    EXPECT_EQ(count(plan, "cross-entropy"), 1) << text;
  }
}

TEST(DecomposedLoss, IsReplayedAtOtherSizes) {
  const train::TrainingPlan large = training_plan("char_gpt");
  const DistributedPlan plan = distributed(large, "node=2: slice b; gpu=8: slice h, f, v");
  ASSERT_EQ(plan.opened.size(), 2u);
  const train::TrainingPlan small =
      training_plan("char_gpt", {{"b", 2, {}}, {"s", 3, {}}, {"d", 4, {}}, {"h", 2, {}}, {"v", 5, {}}});
  const plan::Mesh mesh{{{"node", 2}, {"gpu", 2}}};
  const auto replayed = replay(plan, large.graph, small.graph, mesh);
  ASSERT_TRUE(replayed.ok()) << replayed.error().message;
  const auto proof = prove(small.graph, *replayed, {.draws = 1});
  ASSERT_TRUE(proof.ok()) << proof.error().message;
  EXPECT_TRUE(proof->holds()) << proof->wrong->what;
}

// Attention with sliced keys: each rank has the scores of its keys, and their products with the
// values are reduced.
TEST(DecomposedLoss, DecomposesSoftmaxOverSlicedKeys) {
  const plan::Graph graph = ops::read_plan(
      "plan attention\n"
      "%0 = input {name=q, type=f32[b=2,s=3,e=4]}\n"
      "%1 = input {name=k, type=f32[b=2,t=5,e=4]}\n"
      "%2 = input {name=v, type=f32[b=2,t=5,e=4]}\n"
      "%3 = contract %0, %1 {to=[b,s,t]}\n"
      "%4 = softmax %3 {over=[t]}\n"
      "%5 = contract %4, %2 {to=[b,s,e]}\n"
      "return y=%5\n");
  for (const std::string_view text :
       {"gpu=2: slice t", "gpu=3: slice t", "gpu=4: slice t", "node=2: slice s; gpu=2: slice t"}) {
    const auto plan = distribute(graph, *read_distribution(text));
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    EXPECT_EQ(layout(*plan, "k"), "sliced(t) on gpu") << text;
    EXPECT_EQ(count(*plan, "all-gather") + count(*plan, "all-to-all"), 0) << text;
    EXPECT_EQ(difference<Field>(graph, *plan), "") << text;
    EXPECT_LE(distance(graph, *plan), 1e-12) << text;
  }
}

// A router's probabilities feed top-k, which needs all experts: decomposing the softmax would save
// nothing.
TEST(DecomposedLoss, KeepsSoftmaxForAReaderThatNeedsTheWholeIndex) {
  const plan::Graph graph = ops::read_plan(
      "plan router\n"
      "%0 = input {name=z, type=f32[b=8,d=4]}\n"
      "%1 = parameter {name=w, type=f32[d=4,x=8]}\n"
      "%2 = contract %0, %1 {to=[b,x]}\n"
      "%3 = softmax %2 {over=[x]}\n"
      "%4, %5 = top-k %3 {over=x, into=k, count=2}\n"
      "return y=%4\n");
  const auto plan = distribute(graph, *read_distribution("gpu=2: slice x"));
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  EXPECT_TRUE(plan->opened.empty());
}

}  // namespace
}  // namespace weft::distribute
