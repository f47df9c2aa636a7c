// Partitioned all-reduces: the plan keeps its meaning, and the planner stage takes the faster
// variant, or the requested one.
#include <gtest/gtest.h>

#include "bucket_case.h"
#include "distribute_case.h"
#include "search_case.h"
#include "weft/parallel/distribute/prove.h"
#include "weft/plan/graph/text.h"
#include "weft/planner/search/bucket/partition_all_reduces.h"

namespace weft::search {
namespace {

using distribute::distributed;
using distribute::DistributedPlan;
using distribute::training_plan;

TEST(Partitioned, IsProvenAndPrintsCompletely) {
  const train::TrainingPlan model =
      training_plan("digits_mlp", {{"b", 5, {}}, {"p", 6, {}}, {"f", 7, {}}, {"c", 4, {}}});
  for (const std::string_view spread : {"gpu=3: slice b", "node=2: slice b; gpu=2: slice f"}) {
    const DistributedPlan together = in_buckets(distributed(model, spread), 3);
    const std::vector<std::int64_t> bytes(together.graph.node_count(), 100);
    const auto cut = in_parts(together, bytes, 50);
    ASSERT_TRUE(cut.ok()) << cut.error().message;
    EXPECT_EQ(cut->cut, all_reduces(together.graph));
    EXPECT_EQ(cut->parts, 3 * cut->cut);
    const std::string text = plan::print(cut->plan.graph);
    EXPECT_NE(text.find("parts=3"), std::string::npos) << text;
    const auto again = plan::read(text, ops::all());
    ASSERT_TRUE(again.ok()) << again.error().message;
    EXPECT_EQ(plan::print(*again), text);
    const auto proof = distribute::prove(model.graph, cut->plan);
    ASSERT_TRUE(proof.ok()) << proof.error().message;
    EXPECT_TRUE(proof->holds()) << proof->wrong->what;
    // An all-reduce that fits is not split.
    EXPECT_EQ(plan::print(in_parts(together, bytes, 100).value().plan.graph), plan::print(together.graph));
  }
}

struct Credited {
  PredictedPlan before;
  PartitionedAllReduces found;
};

// All gradients in one bucket, over a link of 10 GB/s.
Credited credited(double latency, std::int64_t numbers, const WindowOptions& options) {
  cluster::Cluster pod{"pod", some_gpu(100e12), {}};
  cluster::Link link;
  link.name = "wire";
  link.bytes_per_second = 10e9;
  link.latency_seconds = latency;
  pod.axes.push_back({"gpu", 4, std::move(link)});
  const Machine machine = machine_by_figures(pod);
  Credited made;
  made.before.plan = in_buckets(
      distributed(training_plan("digits_mlp", {{"b", 64, {}}, {"f", numbers, {}}}), "gpu=4: slice b", {}),
      100);
  const cost::StepCosts costs = machine.costs(made.before.plan.mesh).value();
  made.before.prediction =
      sim::predict(made.before.plan.graph, made.before.plan.mesh, made.before.plan.layouts, costs).value();
  auto found = partition_all_reduces(made.before, machine, options);
  if (!found.ok()) throw std::runtime_error(found.error().message);
  made.found = std::move(found).value();
  return made;
}

TEST(PartitionedAllReduces, OnlyIfTheStepGetsFaster) {
  const Credited cheap = credited(0.1e-6, 1 << 18, {.least_gain = 0.001});
  ASSERT_TRUE(cheap.found.plan) << cheap.found.said;
  EXPECT_LT(cheap.found.plan->prediction.seconds, cheap.before.prediction.seconds);
  const Credited dear = credited(1e-3, 8192, {});
  EXPECT_FALSE(dear.found.plan) << dear.found.said;
  EXPECT_NE(dear.found.said.find("faster"), std::string::npos) << dear.found.said;
}

TEST(PartitionedAllReduces, AlwaysIfRequested) {
  const Credited asked = credited(1e-3, 8192, {.credit = 512 << 10});
  ASSERT_TRUE(asked.found.plan) << asked.found.said;
  EXPECT_GT(asked.found.plan->prediction.seconds, asked.before.prediction.seconds);
  for (const sim::EstimatedCollective& call : asked.found.plan->prediction.collectives)
    EXPECT_LE(call.bytes, 512 << 10);
  const Credited fits = credited(1e-3, 8192, {.credit = 1 << 30});
  EXPECT_FALSE(fits.found.plan);
  EXPECT_EQ(fits.found.said, "1 GiB bounds nothing: no all-reduce has more than 2.34 MiB");
}

}  // namespace
}  // namespace weft::search
