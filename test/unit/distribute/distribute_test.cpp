// From one device to a mesh: each family of parallelism follows from lists of indices and computes
// what one device does. Computed over a prime field, so that nothing is lost to rounding.
#include "distribute_case.h"

#include "weft/parallel/distribute/convert.h"
#include "weft/parallel/distribute/decompose_nodes.h"
#include "weft/parallel/distribute/index_roles.h"
#include "weft/plan/graph/text.h"
#include "weft/plan/spmd/localize.h"

namespace weft::distribute {
namespace {

constexpr std::string_view kMlp =
    "CREATE MODEL mlp (b = 6, d = 5, f = 8, c = 4) INPUT x[b, d], label[b] OF int32 "
    "PARAMETER w1[d, f] INIT normal(0, 1), b1[f], w2[f, c] INIT normal(0, 1), b2[c] AS WITH "
    "h AS (SELECT relu(sum(x * w1) + b1) FROM x, w1, b1 GROUP BY b, f), "
    "logits AS (SELECT sum(h * w2) + b2 FROM h, w2, b2 GROUP BY b, c) "
    "SELECT mean(cross_entropy(logits, label) OVER (PARTITION BY b)) AS loss FROM logits, label;";

const train::TrainingPlan& mlp() {
  static const train::TrainingPlan plan = training_plan(kMlp);
  return plan;
}

// A transformer with one block and a sequence of four tokens.
const train::TrainingPlan& gpt() {
  static const train::TrainingPlan plan = training_plan(
      "char_gpt", {{"b", 2, {}}, {"s", 4, {}}, {"d", 4, {}}, {"h", 2, {}}, {"layers", 1, {}}, {"v", 4, {}}});
  return plan;
}

void expect_same(const train::TrainingPlan& plan, std::string_view distribution,
                 DistributeOptions options = {.smallest_share = 1}) {
  EXPECT_EQ(difference<ops::Field>(plan.graph, distributed(plan, distribution, options)), "") << distribution;
}

TEST(Distribute, DataParallel) {
  const DistributedPlan plan = distributed(mlp(), "rank=2: slice b");
  EXPECT_EQ(layout(plan, "x"), "sliced(b) on rank");
  EXPECT_EQ(layout(plan, "w1"), "replicated");
  EXPECT_EQ(count(plan, "all-reduce", plan::Phase::forward), 2);   // the loss and its row count
  EXPECT_EQ(count(plan, "all-reduce", plan::Phase::backward), 4);  // each gradient, as soon as it is computed
  EXPECT_EQ(count(plan, "all-reduce", plan::Phase::update), 0);
  for (const std::string_view mesh : {"rank=2: slice b", "rank=3: slice b", "rank=4: slice b",
                                      "rank=1: slice b", "node=2: slice b; gpu=3: slice b"})
    expect_same(mlp(), mesh);
}

TEST(Distribute, ColumnThenRow) {
  const DistributedPlan plan = distributed(mlp(), "gpu=2: slice f");
  EXPECT_EQ(layout(plan, "w1"), "sliced(f) on gpu");
  EXPECT_EQ(layout(plan, "w2.first"), "sliced(f) on gpu");
  EXPECT_EQ(layout(plan, "b2"), "replicated");
  EXPECT_EQ(count(plan, "all-reduce", plan::Phase::forward), 1);
  EXPECT_EQ(count(plan, "all-reduce", plan::Phase::backward), 0);  // x needs no gradient
  EXPECT_EQ(count(plan, "all-gather"), 0);
  for (const std::string_view text : {"gpu=2: slice f", "gpu=3: slice f", "gpu=8: slice f",
                                      "node=3: slice b; gpu=2: slice f", "node=2: slice f; gpu=2: slice f"})
    expect_same(mlp(), text);
}

TEST(Distribute, Heads) {
  const DistributedPlan plan = distributed(gpt(), "gpu=2: slice h, f");
  EXPECT_EQ(layout(plan, "gpt_block.0.wq"), "sliced(h) on gpu");
  EXPECT_EQ(layout(plan, "gpt_block.0.wo"), "sliced(h) on gpu");
  EXPECT_EQ(layout(plan, "gpt_block.0.w1"), "sliced(f) on gpu");
  // Megatron's f and g: one all-reduce per sublayer, forward and backward.
  EXPECT_EQ(count(plan, "all-reduce", plan::Phase::forward), 2);
  EXPECT_EQ(count(plan, "all-reduce", plan::Phase::backward), 2);
  EXPECT_EQ(count(plan, "all-gather") + count(plan, "all-to-all") + count(plan, "reduce-scatter"), 0);
  expect_same(gpt(), "gpu=2: slice h, f");
  expect_same(gpt(), "node=2: slice b; gpu=2: slice h, f, v");
}

TEST(Distribute, SequenceParallelSplitsTheAllReduces) {
  const DistributedPlan plan = distributed(gpt(), "gpu=2: slice h, f, s");
  EXPECT_EQ(layout(plan, "n2"), "sliced(s) on gpu");
  EXPECT_EQ(count(plan, "reduce-scatter", plan::Phase::forward), 2);
  EXPECT_EQ(count(plan, "all-gather", plan::Phase::forward), 2);
  EXPECT_EQ(count(plan, "all-reduce", plan::Phase::forward), 2);  // the loss and its row count
  expect_same(gpt(), "gpu=2: slice h, f, s");
  expect_same(gpt(), "gpu=2: slice h, f, v, s");
  expect_same(gpt(), "gpu=2: slice h, f, v, s", {.gather_again = false, .smallest_share = 1});
  expect_same(gpt(), "node=2: slice b, shard parameters; gpu=2: slice h, f, v, s");
}

TEST(Distribute, ContextParallelGathersKeysAndValues) {
  const DistributedPlan plan = distributed(gpt(), "gpu=4: slice s");
  EXPECT_EQ(layout(plan, "tokens"), "sliced(s) on gpu");
  EXPECT_EQ(layout(plan, "probs"), "sliced(s) on gpu");
  EXPECT_EQ(count(plan, "all-gather", plan::Phase::forward), 2);
  expect_same(gpt(), "gpu=4: slice s");
  expect_same(gpt(), "node=2: slice s; gpu=2: slice b, shard optimizer");
}

// Tokens move to the ranks of their experts and back by all-to-all; the router stays with the
// tokens.
TEST(Distribute, ExpertParallel) {
  const auto moe = training_plan("mixtral_8x7b", {{"b", 2, {}},
                                                  {"s", 4, {}},
                                                  {"d", 4, {}},
                                                  {"h", 1, {}},
                                                  {"g", 1, {}},
                                                  {"f", 2, {}},
                                                  {"experts", 4, {}},
                                                  {"layers", 1, {}},
                                                  {"v", 4, {}}});
  const DistributedPlan plan = distributed(moe, "gpu=2: slice x, b");
  EXPECT_EQ(layout(plan, "expert_mlp.0.gate"), "sliced(x) on gpu");
  EXPECT_EQ(layout(plan, "expert_mlp.0.router"), "replicated");
  EXPECT_EQ(count(plan, "all-to-all", plan::Phase::forward), 2);
  EXPECT_EQ(count(plan, "all-gather", plan::Phase::forward), 0);
  EXPECT_EQ(count(plan, "all-to-all", plan::Phase::backward), 2);
  EXPECT_EQ(count(plan, "all-gather", plan::Phase::backward), 0);
  expect_same(moe, "gpu=2: slice x, b");
  expect_same(moe, "node=2: slice b, shard parameters; gpu=2: slice x, s");
  expect_same(moe, "gpu=4: slice x, f");
}

TEST(Distribute, ShardedOptimizer) {
  const DistributedPlan plan = distributed(mlp(), "rank=2: slice b, shard optimizer");
  EXPECT_EQ(layout(plan, "w1"), "replicated");
  EXPECT_EQ(layout(plan, "w1.first"), "sliced(f) on rank");
  EXPECT_EQ(count(plan, "reduce-scatter", plan::Phase::backward), 4);
  EXPECT_EQ(count(plan, "all-gather", plan::Phase::update), 4);
  EXPECT_EQ(count(plan, "all-reduce", plan::Phase::backward), 0);
  for (const train::Optimizer optimizer :
       {train::Optimizer::sgd, train::Optimizer::momentum, train::Optimizer::adamw})
    expect_same(training_plan(kMlp, {}, optimizer), "rank=3: slice b, shard optimizer");
}

TEST(Distribute, ShardedParametersAreGatheredBeforeUse) {
  const DistributedPlan plan = distributed(mlp(), "rank=2: slice b, shard parameters");
  EXPECT_EQ(layout(plan, "w1"), "sliced(f) on rank");
  EXPECT_EQ(count(plan, "all-gather", plan::Phase::forward), 4);
  EXPECT_EQ(count(plan, "all-gather", plan::Phase::backward), 1);  // w2, read by the gradient of its operand
  EXPECT_EQ(count(plan, "all-gather", plan::Phase::update), 0);
  EXPECT_EQ(count(plan, "reduce-scatter", plan::Phase::backward), 4);
  const DistributedPlan kept =
      distributed(mlp(), "rank=2: slice b, shard parameters", {.gather_again = false, .smallest_share = 1});
  EXPECT_EQ(count(kept, "all-gather", plan::Phase::backward), 0);
  expect_same(mlp(), "rank=2: slice b, shard parameters");
  expect_same(mlp(), "rank=3: slice b, shard parameters");
  expect_same(gpt(), "rank=2: slice b, shard parameters");
}

TEST(Distribute, SmallParametersStayWhole) {
  const DistributedPlan plan =
      distributed(mlp(), "rank=2: slice b, shard parameters", {.smallest_share = 16});
  EXPECT_EQ(layout(plan, "w1"), "sliced(f) on rank");
  EXPECT_EQ(layout(plan, "b1"), "replicated");
  EXPECT_EQ(layout(plan, "b1.first"), "replicated");
}

// One replica per node: parameters are sliced along gpu, and only their slices are reduced across
// nodes.
TEST(Distribute, HierarchicalSharding) {
  const DistributedPlan plan = distributed(mlp(), "node=2: slice b; gpu=2: slice b, shard parameters");
  EXPECT_EQ(layout(plan, "w1"), "sliced(f) on gpu");
  EXPECT_EQ(count(plan, "reduce-scatter", plan::Phase::backward), 4);
  EXPECT_EQ(count(plan, "all-reduce", plan::Phase::backward), 4);
  expect_same(mlp(), "node=2: slice b; gpu=2: slice b, shard parameters");
  expect_same(mlp(), "node=2: slice b, shard parameters; gpu=2: slice b, shard parameters");
  expect_same(mlp(), "node=2: slice b, shard optimizer; gpu=2: slice b, shard parameters");
}

// A gradient that is cast moves in the smaller type and is cast on its shard; so is a parameter
// that is cast before use.
TEST(Distribute, CommunicatesTheSmallerTypeOfACast) {
  train::TrainingPlan plan;
  plan.graph = ops::read_plan(
      "plan p\n%0 = input {name=x, type=bf16[b=6,d=4]}\n%1 = parameter {name=w, type=f32[d=4,f=8]}\n"
      "%2 = cast %1 {to=bf16}\n%3 = contract %0, %2 {to=[b,f]}\n%4 = relu %3 in backward\n"
      "%5 = contract %4, %0 {to=[d,f]} in backward\n%6 = cast %5 {to=f32} in backward\n"
      "%7 = sgd %1, %6 {lr=0.1} in update\n"
      "return y=%3, \"next w\"=%7\n");
  const DistributedPlan made = distributed(plan, "rank=2: slice b, shard parameters");
  for (std::size_t n = 0; n < made.graph.node_count(); ++n) {
    const plan::NodeView node = made.graph.view(plan::NodeId(n));
    if (ops::find_communication(node.op()) != nullptr) {
      EXPECT_EQ(node.result_type(0).dtype, plan::DType::bf16);
    }
  }
  EXPECT_EQ(count(made, "all-gather", plan::Phase::forward), 1);
  EXPECT_EQ(count(made, "reduce-scatter", plan::Phase::backward), 1);
  expect_same(plan, "rank=2: slice b, shard parameters");
  expect_same(plan, "rank=2: slice b, shard optimizer");
  expect_same(plan, "rank=3: slice b");
}

TEST(Distribute, Images) {
  const auto plan = training_plan("digits_conv", {{"b", 4, {}}, {"m", 2, {}}, {"n", 2, {}}});
  expect_same(plan, "rank=2: slice b");
  expect_same(plan, "rank=2: slice m, n, b");
  expect_same(plan, "rank=2: slice d, b");
  expect_same(plan, "node=2: slice b, shard parameters; gpu=2: slice n");
}

TEST(Distribute, ExceptionsOverrideTheLists) {
  const DistributedPlan plan =
      distributed(mlp(), "gpu=2: slice f; replicate h on gpu; replicate w1 on gpu; slice c of b2 on gpu");
  EXPECT_EQ(layout(plan, "w1"), "replicated");
  EXPECT_EQ(layout(plan, "b2"), "sliced(c) on gpu");
  EXPECT_EQ(layout(plan, "h"), "replicated");
  expect_same(mlp(), "gpu=2: slice f; replicate h on gpu; replicate w1 on gpu; slice c of b2 on gpu");
  expect_same(mlp(), "gpu=2: slice f; slice b of h on gpu");
  expect_same(gpt(), "gpu=2: slice h, f; slice s of gpt_block.0.scores on gpu");
}

std::string complaint(std::string_view text) {
  const auto distribution = read_distribution(text);
  if (!distribution.ok()) return distribution.error().message + " | " + distribution.error().hint;
  const auto made = distribute(mlp().graph, *distribution);
  return made.ok() ? "" : made.error().message + " | " + made.error().hint;
}

TEST(Distribute, ReportsWrongDistributions) {
  EXPECT_EQ(complaint("gpu=2: slice labels"),
            "no tensor of the plan has an index labels | it has b, d, f, c");
  EXPECT_EQ(complaint("gpu=2: slice f; replicate w3 on gpu"),
            "the plan has no tensor w3 | did you mean 'w1'?");
  EXPECT_EQ(complaint("gpu=2: slice f; replicate w1 on gpus"),
            "the mesh has no axis gpus | its axes are gpu=2");
  EXPECT_EQ(complaint("gpu=2: slice f; slice c of h on gpu"), "h has no index c to slice | it has b, f");
  EXPECT_EQ(complaint("gpu=2; slice b of h on gpu; replicate h on gpu"),
            "two exceptions contradict each other for h on gpu: one slices b, one replicates it | "
            "a tensor has one layout per axis: keep one of the two");
  EXPECT_EQ(complaint("a=1;b=1;c=1;d=1;e=1;f=1;g=1"), "expected a mesh with at most 6 axes, found 7 | ");
}

TEST(Distribution, PrintedTextParsesBack) {
  for (const std::string_view text :
       {"rank=4: slice b", "node=4: slice b, shard parameters; gpu=8: slice h, f, v, s", "gpu=8",
        "stage=8: stage, chunks=2; data=16: slice b, shard optimizer; gpu=8: slice h, f; micro=96; schedule "
        "interleaved",
        "gpu=2: slice b; replicate w on gpu; micro=4", "micro=4",
        "data=2: slice b, micro-batches 5:3; micro=4",
        "data=3: slice takes, b, shard optimizer, micro-batches 1:2:3; gpu=2: slice f; micro=2",
        "data=2: micro-batches 1:1", "stage=2: stage; schedule \"my own\"", "gpu=2: shard optimizer",
        "gpu=2: slice f; replicate block.0.w on gpu; slice d of x on gpu",
        "\"two words\"=2: slice \"a,b\"; replicate \"say \\\"w\\\"\" on \"two words\""}) {
    const auto read = read_distribution(text);
    ASSERT_TRUE(read.ok()) << text << ": " << read.error().message;
    EXPECT_EQ(print(*read), text);
    EXPECT_EQ(read_distribution(print(*read)).value(), *read);
  }
}

// No text crashes the parser: every truncation and every changed letter of a valid text is accepted
// or rejected.
TEST(Distribution, AcceptsOrRejectsAnyText) {
  const std::string good =
      "node=4: slice b, shard parameters; gpu=8; slice d of \"x\" on node; replicate w on gpu; "
      "s=2: stage, chunks=2; data=2: slice b, micro-batches 5:1; micro=3; schedule zb_h1";
  Random random(3);
  for (std::size_t at = 0; at <= good.size(); ++at) {
    (void)read_distribution(good.substr(0, at));
    std::string changed = good;
    if (at < good.size()) changed[at] = static_cast<char>(random.below(256));
    if (const auto read = read_distribution(changed); read.ok()) {
      EXPECT_EQ(read_distribution(print(*read)).value(), *read) << changed;
    }
  }
  for (const std::string_view text : {"",
                                      ";",
                                      "gpu",
                                      "gpu=",
                                      "gpu=x",
                                      "gpu=0",
                                      "gpu=99999999999",
                                      "gpu=2:",
                                      "gpu=2: slice",
                                      "gpu=2: slice b,",
                                      "gpu=2: slice b, b",
                                      "gpu=2; gpu=3",
                                      "replicate w on gpu",
                                      "gpu=2; slice b of",
                                      "\"gpu",
                                      "micro=",
                                      "gpu=2; micro=0",
                                      "gpu=2; micro=2; micro=2",
                                      "a=2: stage; b=2: stage",
                                      "a=2: stage, slice b",
                                      "a=2: stage, chunks=0",
                                      "a=2: stage; schedule",
                                      "a=2: stage; schedule x; schedule y"})
    EXPECT_FALSE(read_distribution(text).ok()) << text;
}

TEST(Distribution, ReportsInvalidNumbersOfMicroBatches) {
  const auto why = [](std::string_view text) {
    const auto read = read_distribution(text);
    return read.ok() ? "" : read.error().message;
  };
  const std::string number = "expected a number of micro-batches per rank, 1 to a million, found ";
  for (const std::string_view wrong : {"0", "-1", "5.5", "1000001", "99999999999999999999"})
    for (const std::string_view takes : {"{}:3", "3:{}"})
      EXPECT_EQ(
          why(fmt::format("data=2: slice b, takes {}; micro=4", fmt::format(fmt::runtime(takes), wrong))),
          fmt::format("{}'{}'", number, wrong))
          << takes;
  EXPECT_EQ(why("data=2: slice b, takes 5:; micro=4"), number + "';'");
  EXPECT_EQ(why("data=2: slice b, micro-batches 5:2:1; micro=4"),
            "data has 2 ranks, but micro-batches has 3 numbers");
  EXPECT_EQ(why("data=2: slice b, takes 8; micro=4"), "data has 2 ranks, but micro-batches has 1 numbers");
  EXPECT_EQ(why("data=2: slice b, micro-batches 5:3, micro-batches 5:3"),
            "expected one list of micro-batches per axis, found 'micro-batches'");
  EXPECT_EQ(why("data=2: stage, micro-batches 5:3; micro=4"),
            "expected chunks=N after stage, found 'micro-batches'");
  // Older texts use another keyword.
  EXPECT_EQ(print(*read_distribution("data=2: slice b, takes 5:3; micro=4")),
            "data=2: slice b, micro-batches 5:3; micro=4");
  // Without numbers it is an index of that name.
  EXPECT_EQ(read_distribution("data=2: slice b, takes")->axes.front().slice,
            (std::vector<std::string>{"b", "takes"}));
}

// The rows of a rank are adjacent if its axis is the last that slices them.
TEST(Distribution, UnequalMicroBatchesAreTheLastAxisWithinAStage) {
  const Distribution whole =
      *read_distribution("data=2: slice b, micro-batches 5:3; stage=2: stage; gpu=2: slice b; micro=4");
  EXPECT_EQ(axes_within_stage(whole), (std::vector<std::size_t>{2, 0}));
  EXPECT_EQ(print(within_stage(whole)), "gpu=2: slice b; data=2: slice b");
  EXPECT_TRUE(is_pipelined(*read_distribution("data=2: slice b, micro-batches 5:3")));
}

TEST(Distribution, SeparatesStagesFromLayouts) {
  const Distribution whole = *read_distribution("data=4: slice b; stage=2: stage; gpu=2: slice f; micro=4");
  EXPECT_TRUE(is_pipelined(whole));
  EXPECT_EQ(stage_axis(whole), 1U);
  EXPECT_EQ(print(within_stage(whole)), "data=4: slice b; gpu=2: slice f");
  EXPECT_FALSE(is_pipelined(within_stage(whole)));
  EXPECT_TRUE(is_pipelined(*read_distribution("gpu=2: slice b; micro=2")));
  EXPECT_EQ(complaint("gpu=2: slice b; micro=2"),
            "stages and micro-batches are not layouts: only the plan of a stage is distributed | ");
}

TEST(Distribute, RejectsADistributedPlan) {
  const DistributedPlan once = distributed(mlp(), "gpu=2: slice f");
  const auto again = distribute(once.graph, read_distribution("gpu=2: slice b").value());
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.error().message, "the plan is already distributed: node %10 (all-reduce at logits)");
}

// A node of the distributed plan has the phase of the node that it computes or moves a value for.
// So do its nodes on a rank and those it is decomposed into.
TEST(Distribute, NodesKeepTheirPhases) {
  for (const std::string_view text :
       {"node=2: slice b, shard parameters; gpu=2: slice h, f", "gpu=2: slice h, f, v, s"}) {
    const DistributedPlan plan = distributed(gpt(), text);
    plan::Graph open;
    if (!plan.opened.empty()) open = decompose_nodes(gpt().graph, plan.opened).value();
    const plan::Graph& one_device = plan.opened.empty() ? gpt().graph : open;
    for (std::size_t n = 0; n < plan.graph.node_count(); ++n)
      EXPECT_EQ(plan.graph.node(plan::NodeId(n)).when, one_device.node(plan.origin[n]).when)
          << plan::print(plan.graph, plan::NodeId(n));
    const auto local = spmd::localize(plan.graph, plan.mesh, plan.layouts, 1, spmd::Exchanges::stay);
    ASSERT_TRUE(local.ok()) << local.error().message;
    EXPECT_TRUE(plan::verify(local->graph).ok());
    std::size_t n = 0;
    for (std::size_t global = 0; global < local->ends.size(); ++global)
      for (; n < local->ends[global]; ++n)
        EXPECT_EQ(local->graph.node(plan::NodeId(n)).when, plan.graph.node(plan::NodeId(global)).when);
    EXPECT_EQ(n, local->graph.node_count());
  }
}

TEST(Distribute, IsDeterministic) {
  const std::string_view text = "node=2: slice b, shard parameters; gpu=2: slice h, f, v, s";
  EXPECT_EQ(print(distributed(gpt(), text).graph), print(distributed(gpt(), text).graph));
}

// Many lists on many meshes: results never change.
TEST(Distribute, EveryListIsCorrect) {
  Random random(7);
  constexpr std::string_view kIndices[] = {"b", "s", "t", "d", "h", "e", "f", "v"};
  for (int round = 0; round < 12; ++round) {
    std::string text;
    for (const std::string_view axis : {"node", "gpu"}) {
      text += fmt::format("{}{}={}: ", text.empty() ? "" : "; ", axis, random.between(1, 3));
      std::vector<std::string_view> left(std::begin(kIndices), std::end(kIndices));
      const auto listed = random.between(1, 4);
      for (std::int64_t i = 0; i < listed; ++i) {
        const auto at = static_cast<std::ptrdiff_t>(random.below(left.size()));
        text += fmt::format("{}{}", i == 0 ? "slice " : ", ", left[static_cast<std::size_t>(at)]);
        left.erase(left.begin() + at);
      }
      text += fmt::format(", shard {}", name(static_cast<Shard>(random.below(3))));
    }
    expect_same(gpt(), text, {.gather_again = random.below(2) == 0, .smallest_share = 1});
  }
}

TEST(Conversion, ReducesLargePartialValuesHierarchically) {
  plan::Graph graph;
  const auto mesh = plan::read_mesh("node=4, gpu=8").value();
  const auto steps = [&](std::int64_t size) {
    const plan::Dim dim{graph.symbol("d"), size};
    const plan::TypeId type = graph.intern_type(plan::DType::f32, {&dim, 1}).value();
    Converter converter(mesh, {});
    const plan::Layout addends{
        {plan::AxisLayout::partial(plan::Monoid::sum), plan::AxisLayout::partial(plan::Monoid::sum)}};
    return converter.find(type, graph.type(type), addends, plan::Layout::replicated(mesh))->steps.size();
  };
  EXPECT_EQ(steps(64), 2u);
  EXPECT_EQ(steps(1 << 24), 3u);
}

TEST(Conversion, UndoesInnerSlicesFirst) {
  plan::Graph graph;
  const plan::Mesh mesh = plan::read_mesh("node=2, gpu=2").value();
  const plan::Dim dim{graph.symbol("b"), 8};
  const plan::TypeId type = graph.intern_type(plan::DType::f32, {&dim, 1}).value();
  const plan::AxisLayout whole, cut = plan::AxisLayout::sliced(dim.index);
  Converter converter(mesh, {});
  const Conversion* both = converter.find(type, graph.type(type), {{cut, cut}}, {{whole, whole}});
  ASSERT_EQ(both->steps.size(), 2u);
  EXPECT_EQ(both->steps[0].axis, 1u);
  // From gpu to node: gathered along the inner axis, sliced along the outer, in one step more than
  // there are axes.
  EXPECT_EQ(converter.find(type, graph.type(type), {{whole, cut}}, {{cut, cut}})->steps.size(), 3u);
  const plan::AxisLayout addends = plan::AxisLayout::partial(plan::Monoid::sum);
  EXPECT_EQ(converter.find(type, graph.type(type), {{whole, cut}}, {{addends, cut}}), nullptr);
}

TEST(IndexRoles, OfShippedModels) {
  const auto roles = index_roles(gpt().graph);
  EXPECT_EQ(roles.batch, std::vector<std::string>{"b"});
  EXPECT_EQ(roles.sequence, std::vector<std::string>{"s"});
  EXPECT_EQ(roles.model, (std::vector<std::string>{"f", "h", "v"}));
  EXPECT_TRUE(roles.expert.empty());
  const auto mixtral = training_plan("mixtral_8x7b", {{"layers", 1, {}}});
  EXPECT_EQ(index_roles(mixtral.graph).expert, std::vector<std::string>{"x"});
}

}  // namespace
}  // namespace weft::distribute
