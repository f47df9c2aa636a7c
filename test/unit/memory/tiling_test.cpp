// Tiling for a small fast memory: the contest's worked examples, what is rejected, and plans.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include <nlohmann/json.hpp>

#include "weft/program/memory/tiling.h"
#include "weft/program/memory/tiling_plan.h"

namespace weft::memory {
namespace {

using Json = nlohmann::json;

const std::filesystem::path kTilings = WEFT_SOURCE_DIR "/../shared/corpus/mlsys26-tiling";

TilingProblem problem_of(const Json& given) {
  TilingProblem problem;
  problem.widths = given["widths"].get<std::vector<std::int64_t>>();
  problem.heights = given["heights"].get<std::vector<std::int64_t>>();
  for (std::size_t i = 0; i < given["inputs"].size(); ++i)
    problem.operators.push_back({given["op_types"][i] == "MatMul", given["inputs"][i], given["outputs"][i][0],
                                 given["base_costs"][i]});
  problem.capacity = given["fast_memory_capacity"];
  problem.bandwidth = given["slow_memory_bandwidth"];
  problem.native_width = given["native_granularity"][0];
  problem.native_height = given["native_granularity"][1];
  return problem;
}

std::vector<TilingStep> steps_of(const Json& given) {
  std::vector<TilingStep> steps;
  for (std::size_t s = 0; s < given["subgraphs"].size(); ++s) {
    const Json& tile = given["granularities"][s];
    TilingStep step{given["subgraphs"][s], tile[0], tile[1], tile[2], given["tensors_to_retain"][s], {}};
    if (const Json& order = given["traversal_orders"][s]; !order.is_null())
      step.order = order.get<std::vector<std::int32_t>>();
    steps.push_back(std::move(step));
  }
  return steps;
}

TEST(Tiling, AnswersTheWorkedExamplesExactly) {
  std::ifstream file(kTilings / "worked_examples.json");
  if (!file) GTEST_SKIP() << "no corpus";
  int refused = 0;
  for (const Json& example : Json::parse(file)) {
    const TilingProblem problem = problem_of(example["problem"]);
    ASSERT_TRUE(check(problem).ok());
    const auto found = price(problem, steps_of(example["schedule"]));
    if (example["expected_total"].is_null()) {
      ASSERT_FALSE(found.ok());
      EXPECT_EQ(found.error().message,
                "step 0: out of memory: it holds 65,536 elements, the capacity is 45,000");
      ++refused;
      continue;
    }
    ASSERT_TRUE(found.ok()) << example["id"] << ": " << found.error().message;
    EXPECT_NEAR(found->total, example["expected_total"], 1e-9 * found->total) << example["id"];
    ASSERT_EQ(found->latencies.size(), example["expected_subgraph_latencies"].size());
    for (std::size_t s = 0; s < found->latencies.size(); ++s)
      EXPECT_NEAR(found->latencies[s], example["expected_subgraph_latencies"][s], 1e-9 * found->latencies[s])
          << example["id"];
  }
  EXPECT_EQ(refused, 1);
}

// (A B) C of 128 each, as in the contest's fifth example.
TilingProblem chained() {
  TilingProblem problem;
  problem.widths = problem.heights = std::vector<std::int64_t>(5, 128);
  problem.operators = {{true, {0, 1}, 3, 2000}, {true, {3, 2}, 4, 2000}};
  problem.capacity = 45000;
  problem.bandwidth = 10;
  problem.native_width = problem.native_height = 128;
  return problem;
}

TEST(Tiling, RejectsInvalidTilings) {
  const auto refusal = [](std::vector<TilingStep> steps) {
    const auto found = price(chained(), steps);
    return found.ok() ? std::string("runs") : found.error().message;
  };
  const TilingStep both{{0, 1}, 128, 128, 32, {}, {}}, first{{0}, 128, 128, 32, {}, {}},
      second{{1}, 128, 128, 32, {}, {}};
  EXPECT_EQ(refusal({both}), "runs");
  EXPECT_EQ(refusal({first, second}), "runs");
  EXPECT_EQ(refusal({first}), "operator 1 is in no step");
  EXPECT_EQ(refusal({second, first}), "step 0: tensor 3 is not available");
  EXPECT_EQ(refusal({{{0, 1}, 128, 0, 32, {}, {}}}), "step 0: a tile must be positive, found [128, 0, 32]");
  EXPECT_EQ(refusal({{{0, 7}, 128, 128, 32, {}, {}}}), "step 0: there are 2 operators, found 7");
  EXPECT_EQ(refusal({{{0, 1}, 64, 64, 32, {}, std::vector<std::int32_t>{0, 1, 2}}}),
            "step 0: an order must have every tile once: 4 tiles, found 3");
  EXPECT_EQ(refusal({{{0, 1}, 64, 64, 32, {}, std::vector<std::int32_t>{0, 1, 2, 2}}}),
            "step 0: an order must have every tile once");
  EXPECT_EQ(refusal({{{0, 1}, 64, 64, 32, {4}, {}}}), "tensor 4 must be in slow memory at the end");
  EXPECT_EQ(refusal({{{0}, 64, 64, 32, {2}, {}}, second}),
            "step 0: tensor 2 is not in fast memory to be retained");
}

TEST(Tiling, PlansAreAtLeastAsGoodAsTheExamples) {
  const auto plan = plan_tiling(chained());
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  EXPECT_LE(plan->price.total, 6915.2 + 1e-6);  // of the example's better strategy
}

TEST(Tiling, ContestPlansMatchTheirEvaluation) {
  for (const std::string name : {"mlsys-2026-1", "mlsys-2026-5"}) {
    std::ifstream file(kTilings / (name + ".json"));
    if (!file) GTEST_SKIP() << "no corpus";
    const TilingProblem problem = problem_of(Json::parse(file));
    const auto plan = plan_tiling(problem);
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    for (const std::int64_t held : plan->price.elements) EXPECT_LE(held, problem.capacity);
    // Three products of 512 in even tiles: 314,573 with tiles of the native side only.
    if (name == "mlsys-2026-1") EXPECT_LT(plan->price.total, 270000);
    // A participant's 690,221 for the second, in a model that lets a tile's strips overlap.
    if (name == "mlsys-2026-5") EXPECT_LT(plan->price.total, 1.01 * 690221.2);
  }
}

}  // namespace
}  // namespace weft::memory
