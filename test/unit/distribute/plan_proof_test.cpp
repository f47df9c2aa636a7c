// Distributed plans replayed at small sizes and proven against the plan of one device.
#include "weft/distribute/prove.h"

#include <gtest/gtest.h>

#include "distribute_case.h"
#include "weft/distribute/replay.h"
#include "weft/ops/operators.h"
#include "weft/plan/text.h"

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
    EXPECT_EQ(proof->draws, 2);
    EXPECT_GT(proof->elements, 0);
  }
}

TEST(PlanProof, UnevenSlicesHoldToo) {
  const train::TrainingPlan plan = training_plan("digits_mlp", sizes(5, 7));
  const auto proof = prove(plan.graph, distributed(plan, "node=2: slice b; gpu=3: slice f"));
  ASSERT_TRUE(proof.ok()) << proof.error().message;
  EXPECT_TRUE(proof->holds()) << proof->wrong->what;
}

plan::Graph read(std::string_view text) { return plan::read(text, ops::all()).value(); }

// The plan says one thing and computes another: the node is named.
TEST(PlanProof, AWrongPlanIsRefusedWithItsNodeAndRank) {
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

TEST(Replay, RefusesAPlanOfAnotherStructure) {
  const train::TrainingPlan plan = training_plan("digits_mlp", sizes(4, 4));
  const train::TrainingPlan other = training_plan("digits_mlp", sizes(4, 4), train::Optimizer::sgd);
  const DistributedPlan spread = distributed(plan, "gpu=2: slice b");
  const auto replayed = replay(spread, plan.graph, other.graph, spread.mesh);
  ASSERT_FALSE(replayed.ok());
  EXPECT_NE(replayed.error().message.find("differ in more than sizes"), std::string::npos);
}

}  // namespace
}  // namespace weft::distribute
