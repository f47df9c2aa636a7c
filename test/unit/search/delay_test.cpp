// Gradients applied one step late: their all-reduces are hidden, and the plan equals the model
// apart from the delay.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "distribute_case.h"
#include "search_case.h"
#include "weft/parallel/distribute/delayed.h"
#include "weft/parallel/distribute/prove.h"
#include "weft/plan/graph/text.h"
#include "weft/planner/search/sync/delay_gradients.h"
#include "weft/predict/sim/step/predict.h"

namespace weft::search {
namespace {

using distribute::distributed;
using distribute::DistributedPlan;
using distribute::training_plan;

constexpr DelayedSums kStands[] = {DelayedSums::after_forward, DelayedSums::first,
                                   DelayedSums::first_at_low_priority};

TEST(DelayGradients, IsTheModelApartFromTheDelay) {
  const train::TrainingPlan model =
      training_plan("digits_mlp", {{"b", 5, {}}, {"p", 6, {}}, {"f", 7, {}}, {"c", 4, {}}});
  for (const std::string_view spread :
       {"gpu=3: slice b", "node=2: slice b; gpu=2: slice b", "node=2: slice b; gpu=2: slice f",
        "gpu=2: slice b, shard optimizer", "gpu=3: slice b, shard parameters"})
    for (const DelayedSums stand : kStands) {
      SCOPED_TRACE(fmt::format("{} {}", spread, static_cast<int>(stand)));
      const DistributedPlan plain = distributed(model, spread);
      const auto made = delay_gradients(plain, stand);
      ASSERT_TRUE(made.ok()) << made.error().message;
      EXPECT_EQ(made->gradients, 4);
      EXPECT_EQ(distribute::find_delayed(made->plan.graph).size(), 4u);
      EXPECT_TRUE(distribute::find_delayed(plain.graph).empty());
      // The text is complete.
      const auto again = plan::read(plan::print(made->plan.graph), ops::all());
      ASSERT_TRUE(again.ok()) << again.error().message;
      EXPECT_EQ(distribute::find_delayed(*again).size(), 4u);
      const auto at_once = distribute::without_delay(made->plan);
      ASSERT_TRUE(at_once.ok()) << at_once.error().message;
      EXPECT_EQ(at_once->graph.node_count(), plain.graph.node_count());
      const auto proof = distribute::prove(model.graph, *at_once);
      ASSERT_TRUE(proof.ok()) << proof.error().message;
      EXPECT_TRUE(proof->holds()) << proof->wrong->what;
    }
}

TEST(DelayGradients, DelaysNothingWithoutAllReduces) {
  const train::TrainingPlan model = training_plan("digits_mlp", {{"b", 6, {}}, {"f", 8, {}}});
  const auto made = delay_gradients(distributed(model, "gpu=2: slice f"), DelayedSums::first);
  ASSERT_FALSE(made.ok());
  EXPECT_NE(made.error().message.find("reduces no gradients across ranks"), std::string::npos);
}

// Without the delay the step waits for the link; with it, it does not.
TEST(DelayGradients, HidesAllReduces) {
  cluster::Cluster pod{"pod", some_gpu(1e12), {}};
  cluster::Link link;
  link.name = "wire";
  link.bytes_per_second = 2e9;
  link.latency_seconds = 20e-6;
  pod.axes.push_back({"gpu", 4, std::move(link)});
  const train::TrainingPlan model = training_plan("digits_mlp", {{"b", 8192, {}}, {"f", 4096, {}}});
  const DistributedPlan plain = distributed(model, "gpu=4: slice b", {});
  const Machine machine = machine_by_figures(pod);
  const cost::StepCosts costs = machine.costs(plain.mesh).value();
  const auto seconds = [&](const DistributedPlan& plan) {
    const sim::Prediction made = sim::predict(plan.graph, plan.mesh, plan.layouts, costs).value();
    return std::pair(made.seconds, made.exposed_communication_seconds);
  };
  const auto [whole, exposed] = seconds(plain);
  EXPECT_GT(exposed, 0.1 * whole);
  for (const DelayedSums stand : kStands) {
    const auto [late, still] = seconds(delay_gradients(plain, stand).value().plan);
    EXPECT_LT(late, whole) << static_cast<int>(stand);
    if (stand == DelayedSums::first_at_low_priority) EXPECT_LT(still, exposed / 10);
  }
}

}  // namespace
}  // namespace weft::search
