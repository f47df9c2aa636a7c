// EXPLAIN ANALYZE: measured times beside predicted ones.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "weft/app/explain/report.h"
#include "weft/plan/graph/text.h"
#include "weft/plan/ops/operators.h"

namespace weft::explain {
namespace {

using plan::NodeId;

// Each exp and relu moves 8000 bytes: 8 us on the device below.
constexpr std::string_view kPlan = R"(plan deep
%0 = input {name=x, type=f32[a=1000]}
%1 = exp %0 @first
%2 = exp %1 @block.0.h
%3 = relu %2 @block.0.h
%4 = exp %3 @block.1.h
%5 = relu %4 @block.1.h
%6 = exp %5 @last
return last=%6
)";

class MeasuredPlan : public testing::Test {
 protected:
  MeasuredPlan() : graph_(std::move(plan::read(kPlan, ops::all())).value()) {
    made_.task = "INFER";
    made_.model = "deep";
    made_.operators = {.graph = &graph_, .phases = {plan::Phase::forward}};
    made_.cluster = {"LOCAL 1", {"core", {1e12, 1e12}, 1e6, 1e9, 0}, {}};
    made_.memory_limit = 1e6;
    made_.alone.emplace().memory = {{"inputs", 4000}};
    made_.sections = {"OPERATORS"};
  }

  void measure(std::vector<double> node_seconds, int workers, double step_seconds) {
    Measured measurement{.ranks = "1 thread", .memory_bytes = 9216, .memory_lower_bound = 8192};
    for (const double seconds : node_seconds) measurement.times.busy_seconds += seconds;
    measurement.times.node_seconds = std::move(node_seconds);
    measurement.times.workers = workers;
    measurement.times.step_seconds = step_seconds;
    measurement.times.steps = 20;
    made_.measured = measurement;
  }

  plan::Graph graph_;
  Report made_;
};

TEST_F(MeasuredPlan, APlanThatDidNotRunHasNoMeasurements) {
  EXPECT_EQ(print_text(made_), R"(INFER deep on LOCAL 1 (1 core)

Plan      one core · the model as written
Step      48 us at best, by the roofline
Memory    3.91 KiB of 977 KiB (< 1 %) · inputs 3.91 KiB
Time      ████████████████████  █ memory-bound 100 %
Limit     memory: 100 % of the step
Next      EXPLAIN (PAGE 'step.html') draws the step; VERBOSE prints all sections

Sure      a lower bound from the device's peak rates, not a prediction

Operators
step          operators  result          moved  at best  bound by
forward                               46.9 KiB    48 us  memory
├─ first      exp        f32[a=1000]  7.81 KiB     8 us  memory
├─ block × 2                          31.2 KiB    32 us  memory
│  └─ h       exp, relu  f32[a=1000]  15.6 KiB    16 us  memory
└─ last       exp        f32[a=1000]  7.81 KiB     8 us  memory
parameters 0, multiply-adds 0, 34 kFLOP in all
roofline of core: f32 1 TFLOP/s, memory 1 GB/s, 0 ns per launch
)");
}

// A folded layer has the time of all its iterations; its contents have the mean of one.
TEST_F(MeasuredPlan, PrintsTimesBesideTheRoofline) {
  measure({0, 12e-6, 10e-6, 20e-6, 30e-6, 40e-6, 4e-6}, 1, 120e-6);
  EXPECT_EQ(print_text(made_), R"(INFER deep on LOCAL 1 (1 core)

Plan      one core · the model as written
Step      120 us measured · 48 us at best, by the roofline
Memory    3.91 KiB of 977 KiB (< 1 %) · 9 KiB measured · inputs 3.91 KiB
Time      ████████████████████  █ memory-bound 100 %
Limit     memory: 100 % of the step
Next      EXPLAIN (PAGE 'step.html') draws the step; VERBOSE prints all sections

Sure      measured: median of 20 steps, 1 thread

Operators
step          operators  result          moved  at best  measured  ratio  bound by
forward                               46.9 KiB    48 us    116 us   2.4x  memory
├─ first      exp        f32[a=1000]  7.81 KiB     8 us     12 us   1.5x  memory
├─ block × 2                          31.2 KiB    32 us    100 us   3.1x  memory
│  └─ h       exp, relu  f32[a=1000]  15.6 KiB    16 us     50 us   3.1x  memory
└─ last       exp        f32[a=1000]  7.81 KiB     8 us      4 us  0.50x  memory
parameters 0, multiply-adds 0, 34 kFLOP in all
roofline of core: f32 1 TFLOP/s, memory 1 GB/s, 0 ns per launch
busy 97 %
memory 9 KiB; no packing takes less than 8 KiB
nodes that ran as one unit share its time by their estimates
)");
}

// Two threads have two seconds per second, and two rooflines.
TEST_F(MeasuredPlan, VerboseHasALinePerNode) {
  made_.verbose = true;
  measure({0, 12e-6, 10e-6, 20e-6, 30e-6, 40e-6, 4e-6}, 2, 75e-6);
  EXPECT_EQ(print_text(made_), R"(INFER deep on LOCAL 1 (1 core)

Plan      one core · the model as written
Step      75 us measured · 48 us at best, by the roofline
Memory    3.91 KiB of 977 KiB (< 1 %) · 9 KiB measured · inputs 3.91 KiB
Time      ████████████████████  █ memory-bound 100 %
Limit     memory: 100 % of the step
Next      EXPLAIN (PAGE 'step.html') draws the step; VERBOSE prints all sections

Sure      measured: median of 20 steps, 1 thread

Operators
step          operators  result          moved  at best  measured  ratio  bound by
forward                               46.9 KiB    48 us    116 us   2.4x  memory
├─ first      exp        f32[a=1000]  7.81 KiB     8 us     12 us   1.5x  memory
│  └─ %1      exp %0     f32[a=1000]  7.81 KiB     8 us     12 us   1.5x  memory
├─ block × 2                          31.2 KiB    32 us    100 us   3.1x  memory
│  └─ h       exp, relu  f32[a=1000]  15.6 KiB    16 us     50 us   3.1x  memory
│     ├─ %2   exp %1     f32[a=1000]  7.81 KiB     8 us     20 us   2.5x  memory
│     └─ %3   relu %2    f32[a=1000]  7.81 KiB     8 us     30 us   3.8x  memory
└─ last       exp        f32[a=1000]  7.81 KiB     8 us      4 us  0.50x  memory
   └─ %6      exp %5     f32[a=1000]  7.81 KiB     8 us      4 us  0.50x  memory
parameters 0, multiply-adds 0, 34 kFLOP in all
roofline of core: f32 1 TFLOP/s, memory 1 GB/s, 0 ns per launch
busy 77 %; the table adds up all threads
memory 9 KiB; no packing takes less than 8 KiB
nodes that ran as one unit share its time by their estimates
)");
}

TEST_F(MeasuredPlan, OtherTimeHasItsOwnLine) {
  measure({3e-6, 12e-6, 10e-6, 20e-6, 30e-6, 40e-6, 4e-6}, 1, 120e-6);
  made_.measured->times.other_seconds = 2e-6;
  EXPECT_NE(print_text(made_).find("\nother         copies, constants"), std::string::npos);
}

TEST_F(MeasuredPlan, ANodeThatDidNotRunHasNoTime) {
  measure({0, 12e-6, 10e-6, 20e-6, 30e-6, 40e-6, 0}, 1, 120e-6);
  EXPECT_NE(print_text(made_).find(
                "└─ last       exp        f32[a=1000]  7.81 KiB     8 us                   memory"),
            std::string::npos)
      << print_text(made_);
}

TEST_F(MeasuredPlan, ComparesMemoryWithTheMinimum) {
  measure({0, 1e-6, 1e-6, 1e-6, 1e-6, 1e-6, 1e-6}, 1, 6e-6);
  EXPECT_NE(print_text(made_).find("\nmemory 9 KiB; no packing takes less than 8 KiB\n"), std::string::npos);
  made_.measured->memory_bytes = 8192;
  EXPECT_NE(print_text(made_).find("\nmemory 8 KiB, the lower bound for any packing\n"), std::string::npos);
}

TEST_F(MeasuredPlan, JsonHasTheSame) {
  EXPECT_EQ(print_json(made_).find("measured"), std::string::npos);
  measure({3e-6, 12e-6, 10e-6, 20e-6, 30e-6, 40e-6, 4e-6}, 2, 80e-6);
  const nlohmann::json json = nlohmann::json::parse(print_json(made_));
  const nlohmann::json& measured = json["measured"];
  EXPECT_EQ(measured["seconds_a_step"], 80e-6);
  EXPECT_EQ(measured["steps"], 20);
  EXPECT_EQ(measured["threads"], 2);
  EXPECT_DOUBLE_EQ(measured["seconds_busy"], 119e-6);
  EXPECT_DOUBLE_EQ(measured["busy"], 119.0 / 160);
  EXPECT_EQ(measured["seconds_other"], 3e-6);
  EXPECT_EQ(measured["memory_bytes"], 9216);
  EXPECT_EQ(measured["memory_lower_bound"], 8192);
  const nlohmann::json& forward = json["phases"][0];
  EXPECT_DOUBLE_EQ(forward["seconds_measured"], 116e-6);
  EXPECT_EQ(forward["steps"][0]["seconds_measured"], 12e-6);
  EXPECT_DOUBLE_EQ(forward["steps"][1]["seconds_measured"], 100e-6);
  EXPECT_DOUBLE_EQ(forward["steps"][1]["steps"][0]["seconds_measured"], 50e-6);
}

// Nested layers: the inner one folds first, then the outer one contains two of it.
TEST(Outline, MeansCoverAllEnclosingIterations) {
  const plan::Graph graph = std::move(plan::read(R"(plan nested
%0 = input {name=x, type=f32[a=8]}
%1 = exp %0 @outer.0.inner.0.h
%2 = exp %1 @outer.0.inner.1.h
%3 = exp %2 @outer.1.inner.0.h
%4 = exp %3 @outer.1.inner.1.h
return y=%4
)",
                                                 ops::all()))
                                .value();
  const double seconds[] = {0, 1, 2, 3, 10};
  const Entry root = outline(graph, plan::Phase::forward, {"core", {1, 1}, 1, 1, 0}, seconds);
  const Entry& outer = root.children.at(0);
  const Entry& inner = outer.children.at(0);
  EXPECT_EQ(root.measured, 16);
  EXPECT_EQ(outer.times, 2);
  EXPECT_EQ(outer.measured, 16);
  EXPECT_EQ(inner.times, 2);
  EXPECT_EQ(inner.measured, 8);
  EXPECT_EQ(inner.children.at(0).measured, 4);
  EXPECT_EQ(inner.children.at(0).node_measured, std::vector<double>{4});
}

}  // namespace
}  // namespace weft::explain
