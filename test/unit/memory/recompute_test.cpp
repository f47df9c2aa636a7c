// Keep or recompute: compared with brute force and proven optima, and invariants at any size.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <map>
#include <queue>
#include <set>
#include <tuple>

#include <nlohmann/json.hpp>

#include "weft/base/random.h"
#include "weft/program/memory/recompute.h"
#include "weft/program/memory/recompute_chain.h"
#include "weft/program/memory/recompute_greedy.h"
#include "weft/program/memory/recompute_least.h"
#include "weft/program/memory/recompute_polish.h"
#include "weft/program/memory/recompute_replay.h"

namespace weft::memory {
namespace {

using Kind = RecomputeStep::Kind;

RecomputeGraph random_graph(Random& random, std::int64_t nodes, std::int64_t largest) {
  RecomputeGraph graph{"random", random.between(0, 3), {}};
  for (std::int64_t v = 0; v < nodes; ++v) {
    RecomputeNode node{"n" + std::to_string(v),
                       static_cast<double>(random.between(0, 9)),
                       static_cast<double>(random.between(0, 9)),
                       random.between(0, largest),
                       {static_cast<std::int32_t>(v) - 1}};  // so that all are read
    if (v > 1 && random.below(2) == 0)
      node.inputs.push_back(static_cast<std::int32_t>(random.between(-1, v - 2)));
    graph.nodes.push_back(std::move(node));
  }
  return graph;
}

RecomputeGraph unit_chain(std::int32_t nodes) {
  RecomputeGraph graph{"chain", 1, {}};
  for (std::int32_t v = 0; v < nodes; ++v) graph.nodes.push_back({"x", 1, 1, 1, {v - 1}});
  return graph;
}

// Five nodes per layer, two of them at the ends of residual branches.
RecomputeGraph transformer(std::int32_t layers) {
  RecomputeGraph graph{"transformer", 1, {}};
  std::int32_t base = -1;
  for (std::int32_t layer = 0; layer < layers; ++layer) {
    const auto at = static_cast<std::int32_t>(graph.nodes.size());
    graph.nodes.push_back({"qkv", 30, 60, 3, {base}});
    graph.nodes.push_back({"attention", 10, 20, 9, {at}});
    graph.nodes.push_back({"projection", 10, 20, 1, {at + 1, base}});
    graph.nodes.push_back({"up", 40, 80, 4, {at + 2}});
    graph.nodes.push_back({"down", 40, 80, 1, {at + 3, at + 2}});
    base = at + 4;
  }
  return graph;
}

// A plain search over states, written from the rules alone.
struct Brute {
  using State = std::tuple<std::set<int>, std::set<int>, int, bool>;  // x, gradients, B to do, loss done

  static double least_time(const RecomputeGraph& graph, std::int64_t budget) {
    const int count = static_cast<int>(graph.nodes.size());
    const auto node = [&](int v) -> const RecomputeNode& { return graph.nodes[static_cast<std::size_t>(v)]; };
    const auto bytes = [&](const std::set<int>& x, const std::set<int>& g) {
      std::int64_t total = graph.input_size;
      for (const int v : x) total += node(v).size;
      for (const int v : g) total += node(v).size;
      return total;
    };
    const auto inputs_there = [&](int v, const std::set<int>& x) {
      for (const int input : node(v).inputs)
        if (input >= 0 && !x.contains(input)) return false;
      return true;
    };
    std::map<State, double> known;
    using Entry = std::pair<double, State>;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
    const auto reach = [&](double time, State state) {
      const auto [at, is_new] = known.try_emplace(state, time);
      if (!is_new && at->second <= time) return;
      at->second = time;
      queue.emplace(time, std::move(state));
    };
    if (graph.input_size > budget) return -1;
    reach(0, {{}, {}, count, false});
    while (!queue.empty()) {
      const auto [time, state] = queue.top();
      queue.pop();
      if (known[state] < time) continue;
      const auto& [x, gradients, to_do, seen] = state;
      if (to_do == 0) return time;
      for (int v = 0; v < count; ++v) {
        auto next = x;
        auto next_gradients = gradients;
        if (x.contains(v)) {
          next.erase(v);
          reach(time, {next, gradients, to_do, seen});
        } else if (inputs_there(v, x)) {
          next.insert(v);
          const bool ends = v + 1 == count && !seen;
          if (ends) next_gradients.insert(v);
          if (bytes(next, next_gradients) <= budget)
            reach(time + node(v).forward, {next, next_gradients, to_do, seen || ends});
        }
      }
      const int v = to_do - 1;
      if (!x.contains(v) || !gradients.contains(v) || !inputs_there(v, x)) continue;
      auto next = x;
      auto next_gradients = gradients;
      for (const int input : node(v).inputs)
        if (input >= 0) next_gradients.insert(input);
      if (bytes(next, next_gradients) > budget) continue;
      next.erase(v);
      next_gradients.erase(v);
      reach(time + node(v).backward, {next, next_gradients, to_do - 1, seen});
    }
    return -1;
  }
};

void expect_valid(const RecomputeGraph& graph, const Recomputation& found, std::int64_t budget) {
  const auto replayed = replay(graph, found.steps);
  ASSERT_TRUE(replayed.ok()) << replayed.error().message;
  EXPECT_LE(replayed->peak, budget);
  EXPECT_EQ(replayed->time, found.time);
}

TEST(Recompute, AgreesWithBruteForceOnSmallGraphs) {
  Random random(7);
  for (int i = 0; i < 60; ++i) {
    const RecomputeGraph graph = random_graph(random, random.between(1, 5), 4);
    double before = std::numeric_limits<double>::infinity();
    bool was_feasible = false;
    for (std::int64_t budget = 0; budget <= 24; ++budget) {
      const double least = Brute::least_time(graph, budget);
      const auto found = recompute(graph, budget);
      ASSERT_TRUE(found.ok()) << found.error().message;
      ASSERT_EQ(found->feasible, least >= 0) << "budget " << budget;
      if (!found->feasible) continue;
      if (!was_feasible) EXPECT_EQ(found->least_budget, budget);
      was_feasible = true;
      EXPECT_EQ(found->time, least);
      EXPECT_LE(found->time, before);
      before = found->time;
      expect_valid(graph, *found, budget);
    }
  }
}

TEST(Recompute, ReachesProvenOptima) {
  std::ifstream file(WEFT_SOURCE_DIR "/../shared/corpus/remat-optimal/graphs.json");
  if (!file) GTEST_SKIP() << "no corpus";
  for (const auto& given : nlohmann::json::parse(file)) {
    RecomputeGraph graph{given["name"], given["input_size"], {}};
    for (const auto& node : given["nodes"])
      graph.nodes.push_back({node["name"], node["f"], node["b"], node["a"], node["inputs"]});
    for (const auto& optimum : given["optima"]) {
      const auto found = recompute(graph, optimum["budget"]);
      ASSERT_TRUE(found.ok() && found->feasible) << graph.name;
      EXPECT_EQ(found->least_budget, given["min_feasible_budget"]) << graph.name;
      EXPECT_EQ(found->time, optimum["min_total_time"]) << graph.name << " " << optimum["budget"];
      expect_valid(graph, *found, optimum["budget"]);
    }
    const auto less = recompute(graph, given["min_feasible_budget"].get<std::int64_t>() - 1);
    ASSERT_TRUE(less.ok());
    EXPECT_FALSE(less->feasible);
    EXPECT_EQ(replay(graph, less->least_steps)->peak, given["min_feasible_budget"]);
  }
}

// The solver for long chains compared with the exact one where both can run.
TEST(Recompute, ChainsOfBlocksAreNearTheOptimum) {
  Random random(11);
  double worst = 1;
  for (int i = 0; i < 30; ++i) {
    RecomputeGraph graph = random_graph(random, random.between(6, 10), 6);
    if (i % 2 == 0)
      for (std::size_t v = 0; v < graph.nodes.size(); ++v)
        graph.nodes[v].inputs = {static_cast<std::int32_t>(v) - 1};
    const auto blocks = cut_into_blocks(graph);
    ASSERT_TRUE(blocks.has_value());
    const ChainSchedules chain(*blocks);
    double once = 0;
    for (const RecomputeNode& node : graph.nodes) once += node.forward + node.backward;
    for (std::int64_t budget = 1; budget <= 60; budget += 3) {
      const auto exact = recompute(graph, budget);
      const double cost = chain.cost(budget - graph.input_size);
      if (!std::isfinite(cost)) continue;
      ASSERT_TRUE(exact->feasible);
      const auto steps = chain.steps(budget - graph.input_size);
      const auto replayed = replay(graph, steps);
      ASSERT_TRUE(replayed.ok()) << replayed.error().message;
      EXPECT_LE(replayed->peak, budget);
      EXPECT_EQ(replayed->time, once + cost);
      EXPECT_GE(replayed->time, exact->time);
      if (exact->time > 0) worst = std::max(worst, replayed->time / exact->time);
    }
  }
  EXPECT_LE(worst, 1.25);
}

TEST(Recompute, GreedyAndRepairedStepsAreValid) {
  Random random(13);
  for (int i = 0; i < 15; ++i) {
    const RecomputeGraph graph = random_graph(random, random.between(3, 24), 9);
    const RecomputeModel model = model_of(graph.nodes, 0, graph.nodes.size(), 0, true);
    const LeastMemory least = least_memory_of(graph);
    const auto scratch = replay(graph, least.steps);
    ASSERT_TRUE(scratch.ok()) << scratch.error().message;
    EXPECT_LE(scratch->peak, graph.input_size + least.bytes);
    for (const std::int64_t memory : {least.bytes, least.bytes + 5, 2 * least.bytes}) {
      const auto mended = replay(graph, without_needless_drops(model, least.steps, memory));
      ASSERT_TRUE(mended.ok()) << mended.error().message;
      EXPECT_LE(mended->peak, std::max(scratch->peak, graph.input_size + memory));
      EXPECT_LE(mended->time, scratch->time);
      const auto steps = greedy_steps(model, memory, {});
      if (!steps) continue;
      const auto greedy = replay(graph, *steps);
      ASSERT_TRUE(greedy.ok()) << greedy.error().message;
      EXPECT_LE(greedy->peak, graph.input_size + memory);
    }
  }
}

TEST(Recompute, LongChainsAndTransformersAreMonotone) {
  for (const RecomputeGraph& graph : {unit_chain(60), transformer(12)}) {
    const std::int64_t least = recompute(graph, 0)->least_budget;
    double before = std::numeric_limits<double>::infinity();
    for (std::int64_t budget = least; budget < 24 * least; budget += least / 2 + 1) {
      const auto found = recompute(graph, budget);
      ASSERT_TRUE(found.ok() && found->feasible);
      expect_valid(graph, *found, budget);
      EXPECT_LE(found->time, before) << graph.name << " " << budget;
      before = found->time;
    }
    double once = 0;
    for (const RecomputeNode& node : graph.nodes) once += node.forward + node.backward;
    EXPECT_EQ(recompute(graph, 1'000'000)->time, once);
  }
  EXPECT_EQ(recompute(unit_chain(60), 0)->least_budget, 5);
  EXPECT_TRUE(recompute(unit_chain(60), 0)->least_proven);
  // The minimum is at the backward pass of an attention, while the gradient of the layer's input is
  // live and no activation of it is kept.
  const Recomputation least = *recompute(transformer(12), 0);
  EXPECT_EQ(least.least_budget, 1 + 2 * (9 + 3) + 1);
  EXPECT_TRUE(least.least_proven);
  EXPECT_EQ(replay(transformer(12), least.least_steps)->peak, least.least_budget);
}

TEST(Recompute, RejectsInvalidGraphs) {
  const auto refusal = [](std::vector<RecomputeNode> nodes, std::int64_t input = 0) {
    const auto found = recompute({"g", input, std::move(nodes)}, 10);
    return found.ok() ? std::string("taken") : found.error().message;
  };
  EXPECT_EQ(refusal({}), "expected at least one node, found none");
  EXPECT_EQ(refusal({{"a", 1, 1, 1, {}}}, -1), "the size of the input must not be negative, found -1");
  EXPECT_EQ(refusal({{"a", 1, 1, 1, {0}}}), "node 0 (a): inputs must be earlier nodes or -1, found 0");
  EXPECT_EQ(refusal({{"a", 1, 1, -1, {}}}), "node 0 (a): the size must not be negative, found -1");
  EXPECT_EQ(refusal({{"a", -1, 1, 1, {}}}), "node 0 (a): times must be numbers from 0, found -1 and 1");
  EXPECT_EQ(refusal({{"a", 1, 1, 1, {}}, {"b", 1, 1, 1, {}}}),
            "node 0 (a) is never read and is not the last node");
  EXPECT_EQ(refusal({{"a", 1, 1, std::int64_t{1} << 62, {}}}),
            "the sizes of all nodes must add up to less than 2^61");
  EXPECT_EQ(refusal({{"a", 1, 1, 1, {-1, -1}}}), "taken");
}

TEST(RecomputeJudge, NamesTheFirstWrongStep) {
  const RecomputeGraph graph = unit_chain(2);
  const auto verdict = [&](std::vector<RecomputeStep> steps) {
    const auto replayed = replay(graph, steps);
    return replayed.ok() ? std::string("right") : replayed.error().message;
  };
  const RecomputeStep f0{Kind::forward, 0}, f1{Kind::forward, 1}, b0{Kind::backward, 0},
      b1{Kind::backward, 1}, d0{Kind::drop, 0};
  EXPECT_EQ(verdict({f0, f1, b1, b0}), "right");
  EXPECT_EQ(verdict({f0, f1, d0, f0, b1, b0}), "right");
  EXPECT_EQ(verdict({f1}), "step 0, F 1: its input 0 is not in memory");
  EXPECT_EQ(verdict({f0, f0}), "step 1, F 0: it is already in memory");
  EXPECT_EQ(verdict({d0}), "step 0, drop 0: it is not in memory");
  EXPECT_EQ(verdict({f0, f1, b0}), "step 2, B 0: the next is B 1");
  EXPECT_EQ(verdict({f0, f1, d0, b1}), "step 3, B 1: its input 0 is not in memory");
  EXPECT_EQ(verdict({f0, f1, b1}), "the steps end before B 0");
  EXPECT_EQ(verdict({{Kind::forward, 7}}), "step 0, F 7: there are 2 nodes");
  EXPECT_EQ(replay(graph, std::vector{f0, f1, b1, b0})->peak, 5);
  EXPECT_EQ(replay(graph, std::vector{f0, f1, b1, b0})->held,
            "the input, x of x and x, gradients of x and x");
}

}  // namespace
}  // namespace weft::memory
