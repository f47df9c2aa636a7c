// A schedule synthesized for the stages of a plan: faster than shipped ones if stages differ, and
// reproducible from its name.
#include "weft/planner/search/pipeline/synthesize_schedule.h"

#include <gtest/gtest.h>

#include "distribute_case.h"
#include "search_case.h"
#include "weft/parallel/pipeline/library.h"
#include "weft/parallel/pipeline/pipelined_plan.h"
#include "weft/parallel/pipeline/synthesized.h"

namespace weft::search {
namespace {

pipeline::SynthesisRequest some_request() {
  pipeline::SynthesisRequest request;
  request.stages = 4;
  request.times = pipeline::Times::alike(4, 1, 1, 0.8, 0.1);
  request.times.forward = {1, 1.2, 1.2, 2};
  request.memory = {3.57, 4, 4, 4};
  return request;
}

TEST(SynthesizedName, DescribesThePurposeOfTheSchedule) {
  const std::string name = pipeline::synthesized_name(some_request());
  EXPECT_EQ(name, "synthesized_f100_120x2_200_b100x4_w80x4_t10x4_m35_40x3");
  const auto text = pipeline::find_schedule(name), again = pipeline::find_schedule(name);
  ASSERT_TRUE(text.ok()) << text.error().message;
  EXPECT_EQ(*text, *again);
  const auto order = unfold({4, 1, 8, *text}), other = unfold({4, 1, 8, *again});
  ASSERT_TRUE(order.ok()) << order.error().message;
  EXPECT_EQ(order->schedule.orders, other->schedule.orders);
  for (std::size_t stage = 0; stage < 4; ++stage) EXPECT_LE(order->in_flight[stage], stage == 0 ? 3.5 : 4);
  // A distribution that names it parses back as printed.
  const auto given = distribute::read_distribution("gpu=4: stage; micro=8; schedule " + name);
  ASSERT_TRUE(given.ok()) << given.error().message;
  EXPECT_EQ(print(*given), "gpu=4: stage; micro=8; schedule " + name);
  const auto schedule = pipeline::schedule_of(*given);
  ASSERT_TRUE(schedule.ok()) << schedule.error().message;
  EXPECT_EQ(schedule->orders, order->schedule.orders);
}

TEST(SynthesizedName, RejectsInvalidNames) {
  for (const std::string_view name :
       {"synthesized_", "synthesized_f1", "synthesized_f1x2_b1x2_w1x2_t0x2_m4", "synthesized_b1_f1_w1_t0_m1",
        "synthesized_f1_b1_w1_t0_mx", "synthesized_f1_b1_w1_t0_m1_q", "synthesized_f9999999_b1_w1_t0_m1"})
    EXPECT_FALSE(pipeline::find_schedule(name).ok()) << name;
  const auto two = pipeline::find_schedule("synthesized_f1x2_b1x2_w1x2_t0x2_m20x2");
  ASSERT_TRUE(two.ok());
  const auto three = unfold({3, 1, 4, *two});
  ASSERT_FALSE(three.ok());
  EXPECT_NE(three.error().message.find("is for 2 stages, found 3"), std::string::npos);
}

// A small GPT whose head costs more than its layers.
class SomeStages : public ::testing::Test {
 protected:
  SomeStages() : pod_{"pod", some_gpu(1e12), {}} {
    pod_.axes = {{"gpu", 4, {.name = "eth", .bytes_per_second = 1e9, .latency_seconds = 5e-6}}};
    machine_ = machine_with_peak(pod_);
    problem_.plan = &plan(16);
    problem_.batch = "b";
    problem_.rows = 16;
    problem_.plan_of = [this](std::int64_t rows) -> Result<const plan::Graph*> { return &plan(rows); };
    problem_.cluster = &pod_;
    problem_.machine = &machine_;
  }

  const plan::Graph& plan(std::int64_t rows) {
    const auto found = plans_.find(rows);
    if (found != plans_.end()) return found->second.graph;
    return plans_
        .emplace(rows, distribute::training_plan("gpt2", {{"b", rows, {}},
                                                          {"s", 64, {}},
                                                          {"d", 64, {}},
                                                          {"h", 4, {}},
                                                          {"v", 512, {}},
                                                          {"p", 64, {}},
                                                          {"layers", 6, {}}}))
        .first->second.graph;
  }

  cluster::Cluster pod_;
  Machine machine_;
  std::map<std::int64_t, train::TrainingPlan> plans_;
  PipelineProblem problem_;
};

TEST_F(SomeStages, GetASynthesizedSchedule) {
  const auto given = distribute::read_distribution("gpu=4: stage; micro=8; schedule zb_h1").value();
  const auto shipped = estimate_given(problem_, given);
  ASSERT_TRUE(shipped.ok()) << shipped.error().message;
  const auto made = with_synthesized_schedule(problem_, *shipped);
  ASSERT_TRUE(made);
  EXPECT_TRUE(pipeline::is_synthesized(made->distribution.schedule));
  EXPECT_LT(made->priced.seconds, 0.995 * shipped->priced.seconds);
  EXPECT_TRUE(made->fits);
  // The synthesized plan, when given, is the same plan at the same cost.
  const auto again = estimate_given(problem_, made->distribution);
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_NEAR(again->priced.seconds, made->priced.seconds, 1e-3 * made->priced.seconds);
  // With the memory that 1F1B uses, it uses no more.
  problem_.memory_bytes = shipped->priced.peak_bytes;
  const auto tight = estimate_given(problem_, given);
  ASSERT_TRUE(tight.ok());
  if (const auto within = with_synthesized_schedule(problem_, *tight))
    EXPECT_LE(within->priced.peak_bytes, problem_.memory_bytes);
}

}  // namespace
}  // namespace weft::search
