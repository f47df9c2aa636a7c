// Codecs in plans: where they are placed, what stays uncoded, and that the plan keeps its meaning
// up to their loss.
#include <cmath>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "distribute_case.h"
#include "weft/parallel/distribute/feedback.h"
#include "weft/parallel/distribute/prove.h"
#include "weft/parallel/distribute/replay.h"
#include "weft/parallel/distribute/requirements.h"
#include "weft/parallel/distribute/without_codecs.h"
#include "weft/plan/graph/text.h"
#include "weft/plan/spmd/layouts.h"
#include "weft/planner/search/codec/place_codecs.h"

namespace weft::search {
namespace {

using distribute::count;
using distribute::distributed;
using distribute::DistributedPlan;
using distribute::training_plan;
using ops::CodecKind;

std::vector<language::SizeOverride> digits(std::int64_t b, std::int64_t f) {
  return {{"b", b, {}}, {"p", 6, {}}, {"f", f, {}}, {"c", 5, {}}};
}

CodedPlan coded(const DistributedPlan& plan, std::string_view text, std::int64_t block = 8) {
  const auto codecs = read_codecs(text);
  if (!codecs.ok()) throw std::runtime_error(codecs.error().message);
  auto made = place_codecs(plan, *codecs, block);
  if (!made.ok()) throw std::runtime_error(made.error().message);
  return std::move(made).value();
}

constexpr std::string_view kBoth = "gradients: int8, weights: int8";
constexpr std::string_view kSpreads[] = {
    "gpu=3: slice b",
    "node=2: slice b; gpu=2: slice b",
    "node=2: slice b; gpu=2: slice f",
    "gpu=3: slice b, shard parameters",
    "node=2: slice b, shard parameters; gpu=2: slice b, shard parameters",
    "node=2: slice b, shard optimizer; gpu=2: slice b, shard parameters",
    "gpu=3: slice b, shard optimizer"};

void expect_proven(const plan::Graph& model, const DistributedPlan& plan) {
  const auto exact = distribute::without_codecs(plan);
  ASSERT_TRUE(exact.ok()) << exact.error().message;
  EXPECT_FALSE(distribute::has_codecs(exact->graph));
  EXPECT_EQ(distribute::difference<ops::Field>(model, *exact), "");
  const auto proof = distribute::prove(model, *exact);
  ASSERT_TRUE(proof.ok()) << proof.error().message;
  EXPECT_TRUE(proof->holds()) << proof->wrong->what;
}

TEST(PlaceCodecs, ThePlanIsProvenUpToCodecLoss) {
  // Sizes that divide evenly among ranks, and sizes that do not.
  for (const std::int64_t f : {12, 7}) {
    const train::TrainingPlan model = training_plan("digits_mlp", digits(5, f));
    for (const std::string_view spread : kSpreads) {
      SCOPED_TRACE(fmt::format("{} of f = {}", spread, f));
      for (const std::string_view codecs :
           {kBoth, std::string_view("gradients: int4 with feedback, weights: int8"),
            std::string_view("gradients: top_k(0.3)"), std::string_view("gradients: low_rank(1)")}) {
        SCOPED_TRACE(codecs);
        const CodedPlan made = coded(distributed(model, spread), codecs);
        // A tensor sliced along two axes has rows of a single element here: the factors would be
        // larger.
        if (codecs.find("low_rank") != std::string_view::npos && spread == kSpreads[2]) {
          EXPECT_FALSE(made.any());
          continue;
        }
        EXPECT_TRUE(made.any());
        EXPECT_GT(count(made.plan, "encode"), 0);
        EXPECT_EQ(distribute::find_feedback(made.plan.graph).empty(), codecs == kBoth);
        expect_proven(model.graph, made.plan);
        // The text is complete.
        const auto again = plan::read(plan::print(made.plan.graph), ops::all());
        ASSERT_TRUE(again.ok()) << again.error().message;
        EXPECT_EQ(plan::print(*again), plan::print(made.plan.graph));
      }
    }
  }
}

TEST(PlaceCodecs, IsProvenAtOtherSizesAndOnOtherMeshes) {
  const train::TrainingPlan large = training_plan("digits_mlp", {{"b", 4096, {}}, {"f", 8192, {}}}),
                            small = training_plan("digits_mlp", digits(5, 7));
  const CodedPlan made =
      coded(distributed(large, "node=16: slice b, shard parameters; gpu=8: slice b, shard parameters", {}),
            kBoth, 256);
  ASSERT_TRUE(made.any());
  const auto exact = distribute::without_codecs(made.plan);
  ASSERT_TRUE(exact.ok()) << exact.error().message;
  const auto replayed =
      distribute::replay(*exact, large.graph, small.graph, plan::Mesh{{{"node", 2}, {"gpu", 3}}});
  ASSERT_TRUE(replayed.ok()) << replayed.error().message;
  const auto proof = distribute::prove(small.graph, *replayed);
  ASSERT_TRUE(proof.ok()) << proof.error().message;
  EXPECT_TRUE(proof->holds()) << proof->wrong->what;
}

// The maximum of the ranks' partial values instead of their sum.
TEST(PlaceCodecs, RejectsAPlanWithAWrongReduction) {
  const train::TrainingPlan model = training_plan("digits_mlp", digits(5, 7));
  DistributedPlan plan = coded(distributed(model, "gpu=3: slice b"), kBoth).plan;
  std::string text = plan::print(plan.graph);
  const std::size_t at = text.find("kind=sum", text.find("= reduce %", text.find("= decode")));
  ASSERT_NE(at, std::string::npos);
  text.replace(at, 8, "kind=max");
  auto read = plan::read(text, ops::all());
  ASSERT_TRUE(read.ok()) << read.error().message;
  plan.graph = std::move(*read);
  plan.layouts = *spmd::infer_layouts(plan.graph, plan.mesh);
  const auto exact = distribute::without_codecs(plan);
  ASSERT_TRUE(exact.ok()) << exact.error().message;
  EXPECT_NE(distribute::difference<ops::Field>(model.graph, *exact), "");
}

DistributedPlan rewritten(const DistributedPlan& plan, std::string_view from, std::string_view to) {
  std::string text = plan::print(plan.graph);
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
  auto read = plan::read(text, ops::all());
  if (!read.ok()) throw std::runtime_error(read.error().message);
  DistributedPlan made;
  made.mesh = plan.mesh;
  made.opened = plan.opened;
  made.origin = plan.origin;
  made.own = plan.own;
  made.graph = std::move(*read);
  made.layouts = *spmd::infer_layouts(made.graph, made.mesh);
  return made;
}

// The stored error must be what the code lacks and start at zero; otherwise it is a state that the
// model does not have.
TEST(PlaceCodecs, RejectsWrongFeedback) {
  const train::TrainingPlan model = training_plan("digits_mlp", digits(5, 7));
  const DistributedPlan plan = coded(distributed(model, "gpu=3: slice b"), "gradients: one_bit").plan;
  const std::size_t all = distribute::find_feedback(plan.graph).size();
  ASSERT_GT(all, 1u);
  const DistributedPlan wrong = rewritten(plan, "= sub %", "= add %");
  EXPECT_EQ(distribute::find_feedback(wrong.graph).size(), all - 1);
  // Codes that are no feedback remain: they encode data that stays on its rank.
  const auto exact = distribute::without_codecs(wrong);
  ASSERT_FALSE(exact.ok());
  EXPECT_NE(exact.error().message.find("never crossed an axis"), std::string::npos) << exact.error().message;
}

// For the same gradient in every step, the received mean converges: the early loss is sent later.
TEST(PlaceCodecs, FeedbackLosesNothingOverTime) {
  const train::TrainingPlan model = training_plan("digits_mlp", digits(5, 7), train::Optimizer::sgd);
  for (const std::string_view spread :
       {"gpu=3: slice b", "node=2: slice b; gpu=2: slice b", "gpu=3: slice b, shard parameters"})
    for (const std::string_view codec :
         {"int4 with feedback", "one_bit", "top_k(0.2)", "int8 with feedback"}) {
      SCOPED_TRACE(fmt::format("{} on {}", codec, spread));
      const DistributedPlan plan =
          coded(distributed(model, spread), fmt::format("gradients: {}", codec)).plan;
      const ops::Numbers<double> numbers;
      Random random(3);
      auto inputs = ops::spread<double>(plan.graph, plan.mesh, {}, plan.layouts, numbers, random);
      const auto expected = ops::outputs_of<double>(model.graph, inputs.whole, numbers);
      const auto lost = distribute::find_feedback(plan.graph);
      ASSERT_FALSE(lost.empty());
      for (const distribute::Feedback& one : lost)
        for (auto& rank : inputs.held.find(one.name)->second.ranks) std::ranges::fill(rank.data, 0.0);
      const auto largest_error = [&](int steps) {
        std::vector<std::vector<double>> sums(expected.size());
        for (int step = 0; step < steps; ++step) {
          auto found = spmd::interpret_on_mesh<double>(
              plan.graph, plan.mesh, [&](std::string_view name) { return &inputs.held.find(name)->second; },
              numbers);
          EXPECT_TRUE(found.ok()) << found.error().message;
          for (std::size_t o = 0; o < expected.size(); ++o) {
            const auto joined = spmd::join_from_mesh(
                (*found)[o], plan.graph.type(plan.graph.outputs()[o].value), plan.mesh, numbers);
            EXPECT_TRUE(joined.ok()) << joined.error().message;
            sums[o].resize(joined->data.size());
            for (std::size_t i = 0; i < sums[o].size(); ++i) sums[o][i] += joined->data[i];
          }
          for (std::size_t o = expected.size(); o < found->size(); ++o)
            inputs.held.find(plan.graph.updated(plan.graph.outputs()[o]))->second = (*found)[o];
        }
        double off = 0;
        for (std::size_t o = 0; o < expected.size(); ++o)
          for (std::size_t i = 0; i < sums[o].size(); ++i)
            off = std::max(off, std::abs(sums[o][i] / steps - expected[o].data[i]));
        return off;
      };
      const double once = largest_error(1);
      EXPECT_GT(once, 0);
      EXPECT_LT(largest_error(40), once / 4);
    }
}

// The error of an output over all its elements, relative to the largest of them.
double off_by(const plan::Graph& model, const DistributedPlan& plan) {
  const ops::Numbers<double> numbers;
  Random random(3);
  const auto inputs = ops::spread<double>(plan.graph, plan.mesh, {}, plan.layouts, numbers, random);
  const auto expected = ops::outputs_of<double>(model, inputs.whole, numbers);
  const auto found = spmd::interpret_on_mesh<double>(
      plan.graph, plan.mesh, [&](std::string_view name) { return &inputs.held.find(name)->second; }, numbers);
  EXPECT_TRUE(found.ok()) << found.error().message;
  double off = 0;
  for (std::size_t o = 0; o < expected.size(); ++o) {
    // Fails if replicas are not bitwise equal.
    const auto joined =
        spmd::join_from_mesh((*found)[o], plan.graph.type(plan.graph.outputs()[o].value), plan.mesh, numbers);
    EXPECT_TRUE(joined.ok()) << joined.error().message;
    double largest = 0, apart = 0;
    for (std::size_t i = 0; i < expected[o].data.size(); ++i) {
      largest = std::max(largest, std::abs(expected[o].data[i]));
      apart = std::max(apart, std::abs(expected[o].data[i] - joined->data[i]));
    }
    if (largest > 0) off = std::max(off, apart / largest);
  }
  return off;
}

// With SGD, the updated weight is off by the error of the gradient.
TEST(PlaceCodecs, LossIsSmallAndReplicasAreEqual) {
  const train::TrainingPlan model = training_plan("digits_mlp", digits(5, 7), train::Optimizer::sgd);
  for (const std::string_view spread : kSpreads) {
    SCOPED_TRACE(spread);
    const DistributedPlan exact = distributed(model, spread);
    EXPECT_LT(off_by(model.graph, exact), 1e-9);
    double last = 0;
    for (const std::string_view codec : {"int8", "bf16", "e4m3", "e5m2", "int4"}) {
      SCOPED_TRACE(codec);
      const double off = off_by(model.graph, coded(exact, fmt::format("gradients: {}", codec)).plan);
      EXPECT_LT(off, 0.01);
      last = off;
    }
    EXPECT_GT(last, 0);
  }
}

TEST(PlaceCodecs, SkipsTinyTensors) {
  const train::TrainingPlan model = training_plan("digits_mlp", digits(6, 9));
  const DistributedPlan plain = distributed(model, "gpu=3: slice b");
  // Two matrices and two biases.
  const CodedPlan some = coded(plain, "gradients: int4", 48);
  ASSERT_EQ(some.exchanges.size(), 1u);
  EXPECT_EQ(some.exchanges[0].coded, 1u);  // 6 x 9 is at least one block, 9 x 5 is not
  EXPECT_EQ(some.exchanges[0].numbers, 54);
  EXPECT_LT(some.exchanges[0].code_bytes, some.exchanges[0].bytes);
  EXPECT_EQ(some.exchanges[0].times, 2);
  const CodedPlan none = coded(plain, kBoth, 256);
  EXPECT_FALSE(none.any());
  EXPECT_EQ(plan::print(none.plan.graph), plan::print(plain.graph));
  EXPECT_EQ(print(none.exchanges[1]), "weights int8: none are exchanged");
}

// A weight that is gathered along two axes in turn is encoded once.
TEST(PlaceCodecs, ForwardsCodesUnchanged) {
  const train::TrainingPlan model = training_plan("digits_mlp", digits(8, 16));
  const DistributedPlan plain =
      distributed(model, "node=2: slice b, shard parameters; gpu=2: slice b, shard parameters");
  const CodedPlan made = coded(plain, "weights: int8");
  EXPECT_GT(made.exchanges[0].coded, 0u);
  EXPECT_LT(count(made.plan, "encode"), static_cast<int>(made.exchanges[0].coded));
}

TEST(ReadCodecs, ReportsErrors) {
  const auto complaint = [](std::string_view text) { return read_codecs(text).error().message; };
  EXPECT_EQ(print(*read_codecs(" weights:bf16 , gradients: int4 ")), "gradients: int4, weights: bf16");
  EXPECT_EQ(print(*read_codecs("")), "");
  EXPECT_EQ(complaint("gradients: int9"), "unknown codec: 'int9'");
  EXPECT_EQ(complaint("gradient: int8"), "expected gradients, weights or activations, found 'gradient'");
  EXPECT_EQ(complaint("int8"), "expected what to encode and a codec, found 'int8'");
  EXPECT_EQ(complaint("gradients: int8, gradients: int4"), "gradients are given two codecs");
  EXPECT_EQ(complaint("gradients: int8,"), "expected what to encode and a codec, found ''");
  for (const std::string_view text :
       {"gradients: int8 or int4(32) always", "gradients: top_k(0.01), weights: int4",
        "gradients: low_rank(4) or int8", "gradients: int4 with feedback",
        "gradients: int8 with feedback or one_bit, weights: bf16 always",
        "weights: int8, activations: int8 or bf16 always"})
    EXPECT_EQ(print(*read_codecs(text)), text);
  EXPECT_EQ(complaint("gradients: top_k"), "top_k keeps a share of the numbers between 0 and 1, found ''");
  EXPECT_EQ(complaint("gradients: top_k(1.5)"),
            "top_k keeps a share of the numbers between 0 and 1, found '(1.5)'");
  for (const std::string_view rank : {"", "(0)", "(-1)", "(2.5)", "(x)", "(100000)"})
    EXPECT_EQ(complaint(fmt::format("gradients: low_rank{}", rank)),
              fmt::format("the rank of low_rank is from 1 to 1024, found '{}'", rank));
  EXPECT_EQ(complaint("gradients: int8(12)"),
            "a block of int8 has 8 to 65536 numbers, a multiple of 8, found '(12)'");
  EXPECT_EQ(complaint("gradients: bf16(8)"), "bf16 takes no argument, found '(8)'");
  EXPECT_EQ(complaint("gradients: int4 without feedback"), "unknown codec: 'int4 without feedback'");
  EXPECT_EQ(complaint("gradients: int8 or int8"), "gradients are given int8 twice");
  for (const std::string_view text :
       {"weights: one_bit", "weights: low_rank(2)", "weights: int8 with feedback", "activations: top_k(0.1)"})
    EXPECT_NE(complaint(text).find("is for gradients"), std::string::npos);
}

}  // namespace
}  // namespace weft::search
