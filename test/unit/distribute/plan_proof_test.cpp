// Distributed plans replayed at small sizes and proven against the plan of one device.
#include "weft/parallel/distribute/prove.h"

#include <gtest/gtest.h>

#include "distribute_case.h"
#include "weft/parallel/distribute/proof_meshes.h"
#include "weft/parallel/distribute/replay.h"
#include "weft/parallel/distribute/trace_origins.h"
#include "weft/plan/graph/text.h"
#include "weft/plan/ops/operators.h"

namespace weft::distribute {
namespace {

std::vector<language::SizeOverride> sizes(std::int64_t b, std::int64_t f) {
  return {{"b", b, {}}, {"p", 6, {}}, {"f", f, {}}, {"c", 4, {}}};
}

TEST(PlanProof, HoldsForEveryFamilyAtSmallSizes) {
  const train::TrainingPlan large = training_plan("digits_mlp", {{"b", 4096, {}}, {"f", 8192, {}}});
  const train::TrainingPlan small = training_plan("digits_mlp", sizes(4, 4));
  const plan::Mesh mesh{{{"node", 2}, {"gpu", 2}}};
  for (const std::string_view text : {"node=16: slice b; gpu=8: slice b", "node=16: slice b; gpu=8: slice f",
                                      "node=16: slice b, shard parameters; gpu=8: slice b, shard parameters",
                                      "node=16: slice b, shard optimizer; gpu=8: slice f"}) {
    SCOPED_TRACE(text);
    const DistributedPlan plan = distributed(large, text, {});
    const auto replayed = replay(plan, large.graph, small.graph, mesh);
    ASSERT_TRUE(replayed.ok()) << replayed.error().message;
    EXPECT_EQ(replayed->graph.node_count(), plan.graph.node_count());
    for (std::size_t n = 0; n < plan.graph.node_count(); ++n)
      EXPECT_EQ(replayed->graph.node(plan::NodeId(n)).op, plan.graph.node(plan::NodeId(n)).op);
    const auto proof = prove(small.graph, *replayed);
    ASSERT_TRUE(proof.ok()) << proof.error().message;
    EXPECT_TRUE(proof->holds()) << proof->wrong->what;
    EXPECT_GE(proof->draws, 2);
    EXPECT_GT(proof->elements, 0);
  }
}

TEST(PlanProof, HoldsForUnevenSlices) {
  const train::TrainingPlan plan = training_plan("digits_mlp", sizes(5, 7));
  const auto proof = prove(plan.graph, distributed(plan, "node=2: slice b; gpu=3: slice f"));
  ASSERT_TRUE(proof.ok()) << proof.error().message;
  EXPECT_TRUE(proof->holds()) << proof->wrong->what;
}

plan::Graph read(std::string_view text) { return plan::read(text, ops::all()).value(); }

// The plan states one thing and computes another: the error names the node.
TEST(PlanProof, RejectsAWrongPlanWithItsNodeAndRank) {
  const plan::Graph one = read(R"(plan p
%0 = input {name=x, type=f32[b=4]}
%1 = relu %0
%2 = neg %1
return y=%2
)");
  DistributedPlan wrong;
  wrong.mesh = {{{"gpu", 2}}};
  wrong.graph = read(R"(plan p
%0 = input {name=x, type=f32[b=4], layout="sliced(b) on gpu"}
%1 = tanh %0
%2 = all-gather %1 {axis=gpu, along=b}
%3 = neg %2
return y=%3
)");
  wrong.layouts = spmd::infer_layouts(wrong.graph, wrong.mesh).value();
  wrong.origin = {plan::NodeId(0u), plan::NodeId(1u), plan::NodeId(1u), plan::NodeId(2u)};
  const auto proof = prove(one, wrong);
  ASSERT_TRUE(proof.ok()) << proof.error().message;
  ASSERT_FALSE(proof->holds());
  EXPECT_EQ(proof->wrong->node, plan::NodeId(1u));
  EXPECT_EQ(proof->wrong->rank, 0);
  EXPECT_NE(proof->wrong->what.find("tanh"), std::string::npos) << proof->wrong->what;
}

DistributedPlan written(std::string_view text, plan::Mesh mesh, const plan::Graph& one_device) {
  DistributedPlan plan;
  plan.graph = read(text);
  plan.mesh = std::move(mesh);
  plan.layouts = spmd::infer_layouts(plan.graph, plan.mesh).value();
  Origins origins = trace_origins(one_device, plan.graph).value();
  plan.opened = std::move(origins.opened);
  plan.origin = std::move(origins.origin);
  plan.own = std::move(origins.own);
  return plan;
}

std::string refusal(const plan::Graph& one_device, const DistributedPlan& plan) {
  const auto proof = prove(one_device, plan);
  if (!proof.ok()) return proof.error().message;
  return proof->holds() ? "" : proof->wrong->what;
}

// Over the field the maximum is taken as zero, so a missing correction would go unnoticed there.
TEST(PlanProof, ChecksMaximaInFloatingPoint) {
  constexpr std::string_view kSum = R"(plan p
%0 = input {name=x, type=f32[b=3,v=5]}
%1 = exp %0
%2 = reduce %1 {kind=sum, to=[b]}
%3 = log %2
return y=%3
)";
  const plan::Mesh mesh{{{"gpu", 2}}};
  const plan::Graph one = read(kSum);
  const auto shifted = [&](std::string_view last) {
    return written(std::string(R"(plan p
%0 = input {name=x, type=f32[b=3,v=5], layout="sliced(v) on gpu"}
%1 = reduce %0 {kind=peak, to=[b]}
%2 = all-reduce %1 {axis=gpu, kind=max}
%3 = sub %0, %2
%4 = exp %3
%5 = reduce %4 {kind=sum, to=[b]}
%6 = all-reduce %5 {axis=gpu}
%7 = log %6
)") + std::string(last),
                   mesh, one);
  };
  EXPECT_EQ(refusal(one, shifted("%8 = add %7, %2\nreturn y=%8\n")), "");
  EXPECT_NE(refusal(one, shifted("return y=%7\n")).find("in f64"), std::string::npos);
}

// Labels out of range: their rows are zero, whatever the classes are.
TEST(PlanProof, DrawsIntegersInAndOutOfRange) {
  const plan::Graph one = read(R"(plan p
%0 = input {name=label, type=i32[b=12]}
%1 = parameter {name=w, type=f32[v=5,d=3]}
%2 = gather %0, %1 {along=v}
return y=%2
)");
  // The last row stands in for those out of range.
  const DistributedPlan clamped = written(R"(plan p
%0 = input {name=label, type=i32[b=12], layout="sliced(b) on gpu"}
%1 = parameter {name=w, type=f32[v=5,d=3]}
%2 = constant {value=4, dtype=i32}
%3 = minimum %0, %2
%4 = gather %3, %1 {along=v}
return y=%4
)",
                                          {{{"gpu", 2}}}, one);
  EXPECT_NE(refusal(one, clamped), "");
}

// One number decides for a whole tensor. A random draw shows only one of its sides; an error in the
// other must be found for any draw.
TEST(PlanProof, TestsBothSidesOfAChoice) {
  const plan::Graph one = read(R"(plan p
%0 = input {name=x, type=f32[b=4]}
%1 = reduce %0 {kind=sum, to=[]}
%2 = constant {value=3, dtype=f32}
%3 = minimum %1, %2
%4 = constant {value=2, dtype=f32}
%5 = maximum %1, %4
%6 = less %1, %2
%7 = mul %0, %3
%8 = mul %0, %5
%9 = neg %0
%10 = select %6, %8, %9
return low=%7, high=%8, either=%10
)");
  constexpr std::string_view kOnRanks = R"(plan p
%0 = input {name=x, type=f32[b=4], layout="sliced(b) on gpu"}
%1 = reduce %0 {kind=sum, to=[]}
%2 = all-reduce %1 {axis=gpu}
%3 = constant {value=3, dtype=f32}
%4 = minimum %2, %3
%5 = constant {value=2, dtype=f32}
%6 = maximum %2, %5
%7 = less %2, %3
%8 = mul %0, %4
%9 = mul %0, %6
%10 = neg %0
%11 = select %7, %9, %10
%12 = all-gather %8 {axis=gpu, along=b}
%13 = all-gather %9 {axis=gpu, along=b}
%14 = all-gather %11 {axis=gpu, along=b}
return low=%12, high=%13, either=%14
)";
  const auto is_refused = [&](std::string_view right, std::string_view wrong, std::uint64_t seed) {
    std::string text(kOnRanks);
    text.replace(text.find(right), right.size(), wrong);
    const auto proof =
        prove(one, written(text, {{{"gpu", 2}}}, one), {.draws = 1, .in_floats = false, .seed = seed});
    EXPECT_TRUE(proof.ok()) << proof.error().message;
    return !proof->holds();
  };
  for (std::uint64_t seed = 1; seed <= 16; ++seed) {
    EXPECT_FALSE(is_refused("neg", "neg", seed)) << seed;
    for (const auto& [right, wrong] : {std::pair("value=3", "value=5"),  // bound of a minimum
                                       {"value=2", "value=5"},           // bound of a maximum
                                       {"minimum", "maximum"},
                                       {"maximum", "minimum"},
                                       {"less %2, %3", "less %3, %2"},
                                       {"select %7, %9, %10", "select %7, %9, %0"},
                                       {"select %7, %9, %10", "select %7, %10, %10"}})
      EXPECT_TRUE(is_refused(right, wrong, seed)) << wrong << " for " << right << ", seed " << seed;
  }
}

// A maximum is a choice like a minimum, also as the only one in a plan.
TEST(PlanProof, TestsTheBoundOfAMaximum) {
  constexpr std::string_view kBounded = R"(plan p
%0 = input {{name=x, type=f32[b=4]{}}}
%1 = constant {{value={}, dtype=f32}}
%2 = input {{name=s, type=f32[]}}
%3 = maximum %2, %1
%4 = mul %0, %3
return y=%4
)";
  const plan::Graph one = read(fmt::format(fmt::runtime(kBounded), "", 2));
  for (std::uint64_t seed = 1; seed <= 16; ++seed)
    for (const int bound : {2, 5}) {
      const std::string text = fmt::format(fmt::runtime(kBounded), R"(, layout="sliced(b) on gpu")", bound);
      const auto proof =
          prove(one, written(text, {{{"gpu", 2}}}, one), {.draws = 1, .in_floats = false, .seed = seed});
      ASSERT_TRUE(proof.ok()) << proof.error().message;
      EXPECT_EQ(proof->holds(), bound == 2) << bound << ", seed " << seed;
    }
}

// Comparisons with and without equality differ only at ties.
TEST(PlanProof, DrawsTies) {
  constexpr std::string_view kCompared = R"(plan p
%0 = input {{name=x, type=f32[b=4,d=3]{0}}}
%1 = parameter {{name=w, type=f32[d=3,f=5]}}
%2 = parameter {{name=bias, type=f32[f=5]}}
%3 = contract %0, %1 {{to=[b,f]}}
%4 = add %3, %2
%5 = constant {{value=0, dtype=f32}}
%6 = {1} %4, %5
%7 = select %6, %4, %2
%8 = constant {{value=1, dtype=f32}}
%9 = add %2, %8
%10 = {2} %4, %9
%11 = select %10, %4, %2
return relu=%7, other=%11
)";
  const plan::Graph one = read(fmt::format(fmt::runtime(kCompared), "", "greater", "less"));
  const auto is_refused = [&](std::string_view first, std::string_view second, std::uint64_t seed) {
    const auto proof =
        prove(one,
              written(fmt::format(fmt::runtime(kCompared), R"(, layout="sliced(b) on gpu")", first, second),
                      {{{"gpu", 2}}}, one),
              {.draws = 1, .in_floats = false, .seed = seed});
    EXPECT_TRUE(proof.ok()) << proof.error().message;
    EXPECT_EQ(proof->unseen, "");
    return !proof->holds();
  };
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    EXPECT_FALSE(is_refused("greater", "less", seed)) << seed;
    EXPECT_TRUE(is_refused("greater-equal", "less", seed)) << seed;
    EXPECT_TRUE(is_refused("greater", "less-equal", seed)) << seed;
  }
}

// Counters are drawn near the values that matter; a value that is never drawn is not proven.
TEST(PlanProof, DrawsCountersNearMultiples) {
  constexpr std::string_view kCounted = R"(plan p
%0 = input {{name=x, type=f32[b=4]{0}}}
%1 = state {{name=count, type=i64[]}}
%2 = constant {{value=1, dtype=i64}}
%3 = add %1, %2
%4 = constant {{value={1}, dtype=i64}}
%5 = mod %3, %4
%6 = constant {{value=0, dtype=i64}}
%7 = equal %5, %6
%8 = neg %0
%9 = select %7, %8, %0
return y=%9, "next count"=%3
)";
  const auto proof_of = [&](int period, int changed) {
    const plan::Graph one = read(fmt::format(fmt::runtime(kCounted), "", period));
    return prove(one, written(fmt::format(fmt::runtime(kCounted), R"(, layout="sliced(b) on gpu")", changed),
                              {{{"gpu", 2}}}, one))
        .value();
  };
  for (const int period : {2, 3, 4, 500, 2000}) {
    EXPECT_TRUE(proof_of(period, period).is_proven()) << period;
    for (const int changed :
         {period - 1, period + 1, 2 * period, 3 * period, period % 2 == 0 ? period / 2 : 2 * period})
      EXPECT_FALSE(proof_of(period, changed).holds()) << period << " as " << changed;
  }
  // Beyond the range of draws, the comparison never holds.
  const PlanProof never = proof_of(2'000'000'011, 2'000'000'011);
  EXPECT_TRUE(never.holds());
  EXPECT_EQ(never.unseen, "%7 (equal) was never seen to hold");
}

TEST(PlanProof, ComparesDropoutStreams) {
  constexpr std::string_view kDropped = R"(plan p
%0 = input {name=x, type=f32[b=4,d=6]}
%1 = state {name=step, type=i32[]}
%2 = dropout %0, %1 {rate=0.001, stream=3}
return y=%2
)";
  const plan::Graph one = read(kDropped);
  const auto on_ranks = [&](std::string_view dropout) {
    return written(fmt::format(R"(plan p
%0 = input {{name=x, type=f32[b=4,d=6], layout="sliced(b) on gpu"}}
%1 = state {{name=step, type=i32[]}}
%2 = dropout %0, %1 {{{}}}
return y=%2
)",
                               dropout),
                   {{{"gpu", 2}}}, one);
  };
  EXPECT_EQ(refusal(one, on_ranks("rate=0.001, stream=3")), "");
  EXPECT_NE(refusal(one, on_ranks("rate=0.001, stream=4")), "");
  EXPECT_NE(refusal(one, on_ranks("rate=0.002, stream=3")), "");
}

// Properties other than values.
TEST(PlanProof, ComparesPropertiesOtherThanValues) {
  const plan::Graph one = read(R"(plan p
%0 = input {name=x, type=f32[b=4]}
%1 = parameter {name=w, type=f32[b=4], init=normal, b=0.5}
%2 = add %0, %1
%3 = reduce %2 {kind=sum, to=[]}
return loss=%3, "next w"=%2
)");
  const auto says = [&](std::string_view x, std::string_view w, std::string_view rest) {
    return refusal(one, written(fmt::format(R"(plan p
%0 = input {{name=x, type=f32[b=4]{}}}
%1 = parameter {{name=w, type=f32[b=4]{}}}
%2 = add %0, %1
{})",
                                            x, w, rest),
                                {{{"gpu", 2}}}, one));
  };
  constexpr std::string_view kCut = R"(, layout="sliced(b) on gpu")", kInit = ", init=normal, b=0.5";
  const std::string cut = std::string(kInit) + std::string(kCut);
  constexpr std::string_view kRight =
      "%3 = reduce %2 {kind=sum, to=[]}\n%4 = all-reduce %3 {axis=gpu}\nreturn loss=%4, \"next w\"=%2\n";
  EXPECT_EQ(says(kCut, cut, kRight), "");
  EXPECT_EQ(says(kCut, kCut, kRight),
            "parameter w is initialized as zeros(0, 0), but as normal(0, 0.5) in the plan of one device");
  EXPECT_EQ(says(kCut, cut, "%3 = reduce %2 {kind=sum, to=[]}\nreturn loss=%3, \"next w\"=%2\n"),
            "output loss is partial(sum) on gpu: it must be replicated or sliced without borders");
  EXPECT_EQ(says(kCut, cut,
                 "%3 = all-gather %2 {axis=gpu, along=b}\n%4 = reduce %3 {kind=sum, to=[]}\n"
                 "return loss=%4, \"next w\"=%3\n"),
            "output next w is replicated, but w is sliced(b) on gpu");
  EXPECT_EQ(
      says(kCut, cut,
           "%3 = all-gather %2 {axis=gpu, along=b}\n%4 = reduce %3 {kind=sum, to=[]}\nreturn loss=%4\n"),
      "output next w is not returned");
  EXPECT_EQ(
      says(R"(, layout="partial(sum) on gpu")", std::string(kInit) + R"(, layout="partial(sum) on gpu")",
           "%3 = all-reduce %2 {axis=gpu}\n%4 = reduce %3 {kind=sum, to=[]}\n"
           "return loss=%4, \"next w\"=%2\n"),
      "parameter w is partial(sum) on gpu: it must be replicated or sliced");
}

TEST(ProofMeshes, HaveAxesOfTwoAndOfThree) {
  const train::TrainingPlan plan = training_plan("digits_mlp", sizes(4096, 8192));
  const auto meshes = [&](std::string_view text) {
    std::string printed;
    for (const plan::Mesh& mesh : proof_meshes(distributed(plan, text, {}))) printed += print(mesh) + "; ";
    return printed;
  };
  EXPECT_EQ(meshes("node=16: slice b; gpu=8: slice f"), "node=2, gpu=3; node=3, gpu=2; ");
  EXPECT_EQ(meshes("node=2: slice b; gpu=8: slice f"), "node=2, gpu=3; node=2, gpu=2; ");
  EXPECT_EQ(meshes("rank=2: slice b"), "rank=2; ");
}

// A shift by 2 is by 0 on two ranks, and one by 6 is on two and on three: the mesh grows with the
// ranks that a plan names.
TEST(ProofMeshes, GrowWithTheRanksOfThePlan) {
  DistributedPlan plan;
  plan.mesh = {{{"gpu", 64}}};
  plan.graph = read(R"(plan p
%0 = input {name=x, type=f32[b=4], layout="varying on gpu"}
%1 = permute-ranks %0 {axis=gpu, by=2}
%2 = broadcast-from %1 {axis=gpu, root=6}
return y=%2
)");
  EXPECT_EQ(proof_meshes(plan).front(), (plan::Mesh{{{"gpu", 7}}}));
  EXPECT_EQ(shortest_shift(7, 8), -1);
  EXPECT_EQ(shortest_shift(-6, 4), 2);
}

TEST(Replay, RejectsAPlanWithAnotherStructure) {
  const train::TrainingPlan plan = training_plan("digits_mlp", sizes(4, 4));
  const train::TrainingPlan other = training_plan("digits_mlp", sizes(4, 4), train::Optimizer::sgd);
  const DistributedPlan spread = distributed(plan, "gpu=2: slice b");
  const auto replayed = replay(spread, plan.graph, other.graph, spread.mesh);
  ASSERT_FALSE(replayed.ok());
  EXPECT_NE(replayed.error().message.find("differ in more than their sizes"), std::string::npos);
}

}  // namespace
}  // namespace weft::distribute
