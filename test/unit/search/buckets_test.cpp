// Bucketed gradients: the plan keeps its meaning, and the planner stage takes the faster variant.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "bucket_case.h"
#include "distribute_case.h"
#include "search_case.h"
#include "weft/parallel/distribute/prove.h"
#include "weft/parallel/distribute/replay.h"
#include "weft/plan/graph/text.h"
#include "weft/planner/search/bucket/bucket_exchanges.h"

namespace weft::search {
namespace {

using distribute::distributed;
using distribute::DistributedPlan;
using distribute::training_plan;

std::vector<language::SizeOverride> few(std::int64_t b, std::int64_t f) {
  return {{"b", b, {}}, {"p", 6, {}}, {"f", f, {}}, {"c", 4, {}}};
}

constexpr std::string_view kSpreads[] = {"gpu=3: slice b", "node=2: slice b; gpu=2: slice b",
                                         "node=2: slice b; gpu=2: slice f"};

TEST(MergeExchanges, BucketedGradientsAreProvenAndEqual) {
  const train::TrainingPlan model = training_plan("digits_mlp", few(5, 7));
  for (const std::string_view text : kSpreads) {
    SCOPED_TRACE(text);
    const DistributedPlan plain = distributed(model, text);
    for (const std::size_t members : {2u, 3u, 100u}) {
      const DistributedPlan made = in_buckets(plain, members);
      EXPECT_LT(all_reduces(made.graph), all_reduces(plain.graph));
      EXPECT_EQ(distribute::difference<ops::Field>(model.graph, made), "");
      const auto proof = distribute::prove(model.graph, made);
      ASSERT_TRUE(proof.ok()) << proof.error().message;
      EXPECT_TRUE(proof->holds()) << proof->wrong->what;
      // The text is complete.
      const auto again = plan::read(plan::print(made.graph), ops::all());
      ASSERT_TRUE(again.ok()) << again.error().message;
      EXPECT_EQ(plan::print(*again), plan::print(made.graph));
    }
  }
}

TEST(MergeExchanges, AreProvenAtOtherSizes) {
  const train::TrainingPlan large = training_plan("digits_mlp", {{"b", 4096, {}}, {"f", 8192, {}}}),
                            small = training_plan("digits_mlp", few(4, 4));
  const DistributedPlan made = in_buckets(distributed(large, "node=16: slice b; gpu=8: slice b", {}), 3);
  const auto replayed =
      distribute::replay(made, large.graph, small.graph, plan::Mesh{{{"node", 2}, {"gpu", 2}}});
  ASSERT_TRUE(replayed.ok()) << replayed.error().message;
  const auto proof = distribute::prove(small.graph, *replayed);
  ASSERT_TRUE(proof.ok()) << proof.error().message;
  EXPECT_TRUE(proof->holds()) << proof->wrong->what;
}

// Each reader gets the other's sum.
TEST(MergeExchanges, RejectsSwappedResults) {
  const plan::Graph one = plan::read(R"(plan p
%0 = input {name=x, type=f32[b=4,d=3]}
%1 = input {name=y, type=f32[b=4,d=3]}
%2 = reduce %0 {kind=sum, to=[d]}
%3 = reduce %1 {kind=sum, to=[d]}
return g=%2, h=%3
)",
                                     ops::all())
                              .value();
  for (const bool mixed_up : {false, true}) {
    DistributedPlan plan;
    plan.mesh = {{{"gpu", 2}}};
    plan.graph = plan::read(fmt::format(R"(plan p
%0 = input {{name=x, type=f32[b=4,d=3], layout="sliced(b) on gpu"}}
%1 = input {{name=y, type=f32[b=4,d=3], layout="sliced(b) on gpu"}}
%2 = reduce %0 {{kind=sum, to=[d]}}
%3 = reduce %1 {{kind=sum, to=[d]}}
%4, %5 = all-reduce %2, %3 {{axis=gpu}}
return g=%{}, h=%{}
)",
                                        mixed_up ? 5 : 4, mixed_up ? 4 : 5),
                            ops::all())
                     .value();
    plan.layouts = spmd::infer_layouts(plan.graph, plan.mesh).value();
    plan.origin = {plan::NodeId(0u), plan::NodeId(1u), plan::NodeId(2u), plan::NodeId(3u), plan::NodeId(2u)};
    const auto proof = distribute::prove(one, plan);
    ASSERT_TRUE(proof.ok()) << proof.error().message;
    EXPECT_EQ(proof->holds(), !mixed_up);
  }
}

TEST(MergeExchanges, RejectsBucketsThatWaitForThemselves) {
  DistributedPlan plan;
  plan.mesh = {{{"gpu", 2}}};
  plan.graph = plan::read(R"(plan p
%0 = input {name=x, type=f32[b=4], layout="partial(sum) on gpu"}
%1 = all-reduce %0 {axis=gpu}
%2 = mul %1, %0
%3 = all-reduce %2 {axis=gpu}
return y=%3
)",
                          ops::all())
                   .value();
  plan.layouts = spmd::infer_layouts(plan.graph, plan.mesh).value();
  plan.origin.resize(plan.graph.node_count());
  const std::vector<std::vector<plan::NodeId>> buckets = {{plan::NodeId(1u), plan::NodeId(3u)}};
  const auto made = merge_exchanges(plan, buckets);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().message, "buckets would wait for each other");
}

// -- the planner stage ---------------------------------------------------------------------------

cluster::Cluster ring(double latency) {
  cluster::Cluster made{"pod", some_gpu(100e12), {}};
  cluster::Link link;
  link.name = "wire";
  link.bytes_per_second = 10e9;
  link.latency_seconds = latency;
  made.axes.push_back({"gpu", 4, std::move(link)});
  return made;
}

Bucketed bucketed(const cluster::Cluster& on, PredictedPlan& before, const BucketOptions& options = {}) {
  const train::TrainingPlan model = training_plan("digits_mlp", {{"b", 64, {}}});
  const Machine machine = machine_by_figures(on);
  before.plan = distributed(model, "gpu=4: slice b");
  const cost::StepCosts costs = machine.costs(before.plan.mesh).value();
  before.prediction = sim::predict(before.plan.graph, before.plan.mesh, before.plan.layouts, costs).value();
  auto found = bucket_exchanges(before, machine, options);
  if (!found.ok()) throw std::runtime_error(found.error().message);
  return std::move(found).value();
}

TEST(BucketExchanges, BucketsSmallGradientsIfLatencyIsHigh) {
  const cluster::Cluster dear = ring(50e-6);
  PredictedPlan before;
  const Bucketed found = bucketed(dear, before);
  ASSERT_TRUE(found.plan) << found.said;
  EXPECT_LT(found.plan->prediction.seconds, before.prediction.seconds);
  EXPECT_LT(all_reduces(found.plan->plan.graph), all_reduces(before.plan.graph));
  EXPECT_EQ(found.said.find("4 all-reduces in "), 0u) << found.said;
  // A second call gives the same result.
  PredictedPlan again;
  EXPECT_EQ(plan::print(bucketed(dear, again).plan->plan.graph), plan::print(found.plan->plan.graph));
}

TEST(BucketExchanges, SkipsSmallGains) {
  PredictedPlan before;
  const Bucketed found = bucketed(ring(50e-6), before, {.least_gain = 0.999});
  EXPECT_FALSE(found.plan);
  EXPECT_NE(found.said.find("faster"), std::string::npos) << found.said;
}

}  // namespace
}  // namespace weft::search
