// Plans executed by kernels: every operator and the shipped models agree with their definitions.
#include <numeric>

#include <gtest/gtest.h>

#include "execution_case.h"

namespace weft::exec {
namespace {

constexpr double kFloat = 2e-5;  // tolerance of float sums against double sums here

// Operators that plans for other devices do not contain.
bool is_for_processors(const ops::Case& c) {
  return on_another_device() && (c.op == "linear-cross-entropy" || c.op == "attention-merge");
}

TEST(Execution, EveryOperatorMatchesItsDefinition) {
  Random random(11);
  for (const ops::Case& c : ops::all_cases()) {
    if (is_for_processors(c)) continue;
    const plan::Graph graph = ops::graph_of(c);
    const Tensors inputs = ops::random_inputs<double>(c, graph, {}, random);
    Tensors rounded = inputs;
    for (auto& [name, tensor] : rounded)
      for (double& element : tensor.data) element = static_cast<float>(element);
    const Tensors expected = interpreted(graph, rounded);
    for (const int workers : {1, 3}) {
      const auto rank = start(graph, workers);
      fill(*rank, rounded);
      EXPECT_TRUE(rank->step().ok());
      expect_near(contents(*rank), expected, 1e-4, kFloat, ops::text_of(c));
    }
  }
}

TEST(Execution, EveryOperatorMatchesItsDefinitionOnRandomShapes) {
  Random random(12);
  for (int round = 0; round < 6; ++round)
    for (const ops::Case& c : ops::all_cases()) {
      const std::optional<ops::Case> other = ops::resized(c, round < 3 ? 5 : 19, random);
      if (!other || is_for_processors(c)) continue;
      const plan::Graph graph = ops::graph_of(*other);
      if (graph.value_count() > 0 && graph.type(graph.outputs()[0].value).elements() > 20'000) continue;
      Tensors inputs = ops::random_inputs<double>(*other, graph, {}, random);
      for (auto& [name, tensor] : inputs)
        for (double& element : tensor.data) element = static_cast<float>(element);
      SCOPED_TRACE(ops::text_of(*other));
      const auto rank = start(graph, 2);
      fill(*rank, inputs);
      EXPECT_TRUE(rank->step().ok());
      expect_near(contents(*rank), interpreted(graph, inputs), 2e-4, 5e-5, ops::text_of(*other));
    }
}

struct Small {
  std::string model;
  std::vector<language::SizeOverride> sizes;
  std::int64_t labels;
};

const std::vector<Small>& small_models() {
  static const std::vector<Small> models = {
      {"digits_mlp", {{"b", 5, {}}}, 10},
      {"digits_conv", {{"b", 3, {}}}, 10},
      {"char_gpt",
       {{"b", 2, {}}, {"s", 5, {}}, {"d", 8, {}}, {"h", 2, {}}, {"layers", 2, {}}, {"v", 7, {}}},
       7},
      {"llama2_7b",
       {{"b", 1, {}},
        {"s", 3, {}},
        {"d", 4, {}},
        {"h", 2, {}},
        {"f", 6, {}},
        {"layers", 1, {}},
        {"v", 5, {}}},
       5},
      {"mixtral_8x7b",
       {{"b", 1, {}},
        {"s", 4, {}},
        {"d", 4, {}},
        {"h", 1, {}},
        {"g", 2, {}},
        {"f", 6, {}},
        {"experts", 4, {}},
        {"layers", 1, {}},
        {"v", 5, {}}},
       5},
  };
  return models;
}

// Forward, backward and update of the first step. Adam divides by the root of the squared gradient,
// so for a gradient near zero its sign decides: parameters are compared more loosely.
TEST(Execution, TrainingStepsOfModelsMatchTheirDefinition) {
  for (const Small& small : small_models()) {
    const plan::Graph graph = training_plan(small.model, small.sizes);
    Random random(5);
    const Tensors sources = random_sources(graph, small.labels, random);
    const Tensors expected = interpreted(graph, sources);
    for (const int workers : {1, 2}) {
      const auto rank = start(graph, workers);
      fill(*rank, sources);
      EXPECT_TRUE(rank->step().ok());
      expect_near(contents(*rank), expected, 1e-3, 1e-4, small.model);
    }
  }
}

// Large enough that row loops are split into tasks, partial row sums combined and products split.
TEST(Execution, TasksOfALargerModelAgree) {
  const plan::Graph graph = training_plan(
      "char_gpt",
      {{"b", 4, {}}, {"s", 32, {}}, {"d", 48, {}}, {"h", 3, {}}, {"layers", 1, {}}, {"v", 40, {}}});
  Random random(6);
  const Tensors sources = random_sources(graph, 40, random);
  const Tensors expected = interpreted(graph, sources);
  const auto rank = start(graph, 4);
  if (!on_another_device()) EXPECT_GT(rank->program().tasks.size(), rank->program().units.size());
  EXPECT_EQ(rank->reference_units(), 0u);
  fill(*rank, sources);
  EXPECT_TRUE(rank->step().ok());
  expect_near(contents(*rank), expected, 1e-3, 1e-4, "char_gpt");
}

std::vector<std::byte> bytes_of(const Rank& rank) {
  std::vector<std::byte> bytes;
  EXPECT_TRUE(rank.keep(bytes).ok());
  return bytes;
}

TEST(Execution, IsBitwiseReproducible) {
  const plan::Graph graph = training_plan(
      "char_gpt",
      {{"b", 8, {}}, {"s", 32, {}}, {"d", 48, {}}, {"h", 3, {}}, {"layers", 2, {}}, {"v", 40, {}}});
  Random random(8);
  const Tensors sources = random_sources(graph, 40, random);
  for (const int workers : {1, 2, 4}) {
    std::vector<std::byte> first;
    for (int repeat = 0; repeat < 3; ++repeat) {
      const auto rank = start(graph, workers);
      fill(*rank, sources);
      for (int step = 0; step < 5; ++step) EXPECT_TRUE(rank->step().ok());
      if (repeat == 0)
        first = bytes_of(*rank);
      else
        EXPECT_EQ(first, bytes_of(*rank)) << workers << " workers";
    }
  }
}

// The dependencies of tasks alone keep results bitwise equal: any order that respects them works.
TEST(Execution, AnyOrderThatRespectsDependenciesGivesEqualBits) {
  const plan::Graph graph = training_plan(
      "char_gpt",
      {{"b", 8, {}}, {"s", 32, {}}, {"d", 48, {}}, {"h", 3, {}}, {"layers", 1, {}}, {"v", 40, {}}});
  Random random(9);
  const Tensors sources = random_sources(graph, 40, random);
  std::vector<std::byte> expected;
  for (int round = 0; round < 6; ++round) {
    const auto rank = start(graph, 4);
    fill(*rank, sources);
    const auto& tasks = rank->program().tasks;
    std::vector<std::size_t> left(tasks.size());
    std::vector<std::vector<std::uint32_t>> after(tasks.size());
    std::vector<std::uint32_t> ready, order;
    for (std::uint32_t t = 0; t < tasks.size(); ++t) {
      left[t] = tasks[t].waits.size();
      for (const std::uint32_t wait : tasks[t].waits) after[wait].push_back(t);
      if (left[t] == 0) ready.push_back(t);
    }
    while (!ready.empty()) {
      // The first round picks the oldest, the second the latest, the others at random.
      const std::size_t pick = round == 0   ? 0
                               : round == 1 ? ready.size() - 1
                                            : static_cast<std::size_t>(random.below(ready.size()));
      if (round < 2) std::ranges::sort(ready);
      const std::uint32_t task = ready[pick];
      ready.erase(ready.begin() + static_cast<std::ptrdiff_t>(pick));
      order.push_back(task);
      for (const std::uint32_t next : after[task])
        if (--left[next] == 0) ready.push_back(next);
    }
    ASSERT_EQ(order.size(), tasks.size());
    EXPECT_TRUE(rank->run_in_order(order).ok());
    if (round == 0)
      expected = bytes_of(*rank);
    else
      ASSERT_EQ(expected, bytes_of(*rank)) << "round " << round;
  }
}

}  // namespace
}  // namespace weft::exec
