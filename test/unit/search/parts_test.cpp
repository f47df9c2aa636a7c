// Different distributions for different parts of a model: the chain, the best path through it, and
// the gain.
#include <gtest/gtest.h>

#include <atomic>
#include <random>

#include "distribute_case.h"
#include "search_case.h"
#include "weft/parallel/train/chain.h"
#include "weft/plan/cluster/digest.h"
#include "weft/planner/search/distribution/cheapest_choices.h"
#include "weft/planner/search/distribution/choose_distribution.h"
#include "weft/planner/search/distribution/known_plans.h"
#include "weft/planner/search/distribution/lower_bound.h"
#include "weft/planner/search/distribution/part_variants.h"
#include "weft/planner/search/distribution/plan_lower_bounds.h"

namespace weft::search {
namespace {

using distribute::Distribution;
using distribute::training_plan;

cluster::Cluster gpus(std::int64_t count, double bytes_per_second, double flops = 100e12) {
  cluster::Link link;
  link.name = "wire";
  link.bytes_per_second = bytes_per_second;
  link.latency_seconds = 2e-6;
  return {"pod", some_gpu(flops), {{"gpu", count, link}}};
}

Machine machine(const cluster::Cluster& on) { return machine_with_peak(on); }

// First long sequences, then one vector for each: the same indices, but slicing f pays off only in
// one of them.
constexpr std::string_view kPooled = R"(
CREATE MODEL pooled (b = 256, s = 128, d = 1024, f = 4096, c = 1024)
  INPUT x[b, s, d], label[b] OF int32
  PARAMETER a1[d, f] INIT normal(0, 0.02), a2[f, d] INIT normal(0, 0.02), h1[d, f] INIT normal(0, 0.02),
            h2[f, d] INIT normal(0, 0.02), out[d, c] INIT normal(0, 0.02)
AS WITH
  u1 AS (SELECT relu(sum(x * a1)) FROM x, a1 GROUP BY b, s, f),
  u2 AS (SELECT sum(u1 * a2) FROM u1, a2 GROUP BY b, s, d),
  short AS (SELECT mean(u2) FROM u2 GROUP BY b, d),
  v1 AS (SELECT relu(sum(short * h1)) FROM short, h1 GROUP BY b, f),
  v2 AS (SELECT relu(sum(v1 * h2)) FROM v1, h2 GROUP BY b, d),
  logits AS (SELECT sum(v2 * out) FROM v2, out GROUP BY b, c)
SELECT mean(cross_entropy(logits, label) OVER (PARTITION BY b)) AS loss FROM logits, label;
)";

train::TrainingPlan pooled() {
  return training_plan(kPooled.substr(1), {}, train::Optimizer::adam, plan::DType::bf16);
}

ChainCosts random_costs(std::mt19937& random) {
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random()) % n; };
  const auto price = [&] { return static_cast<double>(random() % 1000) - 200; };
  ChainCosts costs;
  for (std::size_t r = 0, stretches = 1 + below(3); r < stretches; ++r) {
    costs.stretches.push_back({1 + below(2), below(2) == 0 ? 1 : 2 + below(4)});
    for (std::size_t s = 0; s < costs.stretches.back().steps; ++s) {
      costs.nodes.emplace_back(1 + below(3));
      for (double& node : costs.nodes.back()) node = price();
    }
  }
  const auto table = [&](std::size_t a, std::size_t b) {
    std::vector<std::vector<double>> made(costs.nodes[a].size(), std::vector<double>(costs.nodes[b].size()));
    for (auto& row : made)
      for (double& join : row) join = price();
    return made;
  };
  for (std::size_t s = 0; s + 1 < costs.nodes.size(); ++s) costs.joins.push_back(table(s, s + 1));
  std::size_t first = 0;
  for (const ChainCosts::Repeat& stretch : costs.stretches) {
    costs.back.push_back(table(first + stretch.steps - 1, first));
    first += stretch.steps;
  }
  return costs;
}

TEST(CheapestWay, IsTheBestOfAllAssignments) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    const ChainCosts costs = random_costs(random);
    std::vector<std::size_t> choices(costs.nodes.size(), 0);
    double least = costs.total(choices);
    for (std::size_t s = 0; s < choices.size();) {
      least = std::min(least, costs.total(choices));
      for (s = 0; s < choices.size() && ++choices[s] == costs.nodes[s].size(); ++s) choices[s] = 0;
    }
    const std::vector<std::size_t> way = cheapest_choices(costs);
    ASSERT_EQ(way.size(), costs.nodes.size());
    EXPECT_NEAR(costs.total(way), least, 1e-6) << "round " << round;
  }
}

TEST(Chain, RepeatsBothHalvesOfABlock) {
  const train::TrainingPlan plan = training_plan("gpt2", {{"b", 4, {}},
                                                          {"s", 16, {}},
                                                          {"d", 16, {}},
                                                          {"h", 2, {}},
                                                          {"v", 32, {}},
                                                          {"p", 16, {}},
                                                          {"layers", 3, {}}});
  const train::Chain chain = train::chain_of(plan.graph);
  EXPECT_EQ(chain.why_not, "");
  EXPECT_EQ(chain.kinds, 4u);
  EXPECT_EQ(chain.stretches, (std::vector<train::Stretch>{{0, 1, 1}, {1, 2, 3}, {7, 1, 1}}));
  for (std::size_t p = 0; p < chain.parts.size(); ++p) {
    const auto part = train::extract(plan.graph, chain, p, p + 1 < chain.parts.size() ? 2 : 1);
    ASSERT_TRUE(part.ok()) << part.error().message;
    EXPECT_TRUE(plan::verify(*part).ok());
    for (const plan::Phase phase : {plan::Phase::forward, plan::Phase::backward, plan::Phase::update})
      EXPECT_TRUE(part->has(phase)) << name(phase);
  }
}

// Every layer of the decoder reads the encoder's result: they are one part unless that value may
// skip parts.
TEST(Chain, SplitsADecoderIfSkipsAreAllowed) {
  const train::TrainingPlan plan = training_plan("t5_small", {{"b", 2, {}},
                                                              {"r", 4, {}},
                                                              {"s", 4, {}},
                                                              {"d", 8, {}},
                                                              {"h", 2, {}},
                                                              {"e", 4, {}},
                                                              {"f", 8, {}},
                                                              {"layers", 3, {}},
                                                              {"v", 16, {}}});
  const std::size_t whole = train::chain_of(plan.graph).parts.size();
  const train::Chain chain = train::chain_of(plan.graph, train::Skips::allowed);
  EXPECT_GE(chain.parts.size(), 3 * 2 + 3 * 3);
  EXPECT_LT(whole, chain.parts.size());
  // Other models keep their parts.
  const train::TrainingPlan gpt =
      training_plan("char_gpt", {{"b", 2, {}}, {"s", 4, {}}, {"d", 8, {}}, {"h", 2, {}}});
  EXPECT_EQ(train::chain_of(gpt.graph).parts.size(),
            train::chain_of(gpt.graph, train::Skips::allowed).parts.size());
}

TEST(Chain, ReportsAMissingChain) {
  const train::TrainingPlan plan = training_plan(
      "CREATE MODEL one (b = 4, d = 8, c = 4) INPUT x[b, d], label[b] OF int32 "
      "PARAMETER w[d, c] INIT normal(0, 0.02) "
      "AS WITH logits AS (SELECT sum(x * w) FROM x, w GROUP BY b, c) "
      "SELECT mean(cross_entropy(logits, label) OVER (PARTITION BY b)) AS loss FROM logits, label;");
  EXPECT_EQ(train::chain_of(plan.graph).why_not, "it has no cut with only one live value");
}

// The lists of an axis cannot express it, the search gets no hint, and no other assignment is
// faster.
TEST(ByParts, FindsWhatListsCannotExpress) {
  const train::TrainingPlan plan = pooled();
  const cluster::Cluster slow = gpus(4, 1e9);
  const auto choose = [&](const DistributionStrategy& strategy) {
    return choose_distribution(plan.graph, slow, machine(slow),
                               {.budget = {.estimates = 80}, .strategy = &strategy, .alternatives = false});
  };
  const auto by_lists = choose(descend()), parts = choose(by_parts());
  ASSERT_TRUE(by_lists.ok()) << by_lists.error().message;
  ASSERT_TRUE(parts.ok()) << parts.error().message;
  EXPECT_LT(parts->chosen.prediction.seconds * 1.2, by_lists->chosen.prediction.seconds)
      << print(parts->distribution);
  EXPECT_FALSE(parts->distribution.exceptions.empty());
  EXPECT_TRUE(by_lists->distribution.exceptions.empty());

  Evaluator evaluator(plan.graph, machine(slow));
  double least = std::numeric_limits<double>::infinity();
  const std::string_view ways[] = {"", "slice b of {} on gpu", "replicate {} on gpu"};
  for (int code = 0; code < 27; ++code) {
    std::string text = "gpu=4: slice f";
    int rest = code;
    for (const std::string_view entry : {"u2", "v1", "v2"}) {
      if (rest % 3 != 0) text += "; " + fmt::format(fmt::runtime(ways[rest % 3]), entry);
      rest /= 3;
    }
    const auto estimate = evaluator.estimate(distribute::read_distribution(text).value());
    if (estimate.ok()) least = std::min(least, estimate->seconds);
  }
  EXPECT_LE(parts->outcome.best.front().score.seconds, least * 1.0001);
}

TEST(ByParts, NamesOneLayerOfManyInAFoldedPlan) {
  const train::TrainingPlan plan = training_plan("gpt2", {{"b", 8, {}},
                                                          {"s", 16, {}},
                                                          {"d", 16, {}},
                                                          {"h", 2, {}},
                                                          {"v", 32, {}},
                                                          {"p", 16, {}},
                                                          {"layers", 9, {}}});
  const cluster::Cluster pod = gpus(2, 1e10);
  Evaluator evaluator(plan.graph, machine(pod));
  ASSERT_GT(evaluator.folded_layers(), 0);
  const auto estimate = [&](std::string_view text) {
    return evaluator.estimate(distribute::read_distribution(text).value());
  };
  EXPECT_TRUE(estimate("gpu=2: slice b; replicate gpt_block.4.up on gpu").ok());
  EXPECT_FALSE(estimate("gpu=2: slice b; replicate gpt_block.9.up on gpu").ok());
}

TEST(KnownPlans, AreReused) {
  const train::TrainingPlan plan = training_plan("digits_mlp", {{"b", 1024, {}}});
  const cluster::Cluster pod = gpus(4, 1e10);
  std::atomic<int> priced = 0;
  Machine counting = machine(pod);
  counting.costs = [&](const plan::Mesh& mesh) -> Result<cost::StepCosts> {
    WEFT_TRY(costs, cost::step_costs(pod, mesh));
    costs.compute = [&priced, alone = std::move(costs.compute)](const program::Program& program,
                                                                const program::Task& task) {
      ++priced;
      return alone(program, task);
    };
    return costs;
  };
  counting.digest = cluster::digest_of(pod);
  KnownPlans known;
  ChooseOptions options{.budget = {.estimates = 40}, .known = &known};
  const auto choose = [&] {
    priced = 0;
    return choose_distribution(plan.graph, pod, counting, options);
  };
  const auto first = choose();
  const int at_first = priced;
  ASSERT_TRUE(first.ok()) << first.error().message;
  EXPECT_FALSE(first->from_plan_cache);
  const auto second = choose();
  ASSERT_TRUE(second.ok());
  EXPECT_TRUE(second->from_plan_cache);
  EXPECT_LT(priced * 10, at_first);  // simulates only the plan that it shows
  EXPECT_EQ(second->distribution, first->distribution);
  EXPECT_EQ(second->outcome.estimates, first->outcome.estimates);
  EXPECT_EQ(second->alternatives.size(), first->alternatives.size());
  EXPECT_EQ(second->chosen.prediction.seconds, first->chosen.prediction.seconds);

  // Another limit is another query, but simulated plans are known, and the answer does not depend
  // on that.
  options.memory_bytes = 1e9;
  const auto limited = choose();
  ASSERT_TRUE(limited.ok());
  EXPECT_FALSE(limited->from_plan_cache);
  EXPECT_LT(priced * 2, at_first);
  EXPECT_EQ(limited->outcome.estimates, first->outcome.estimates);

  // With other statistics or another cluster, nothing is reused.
  counting.digest.low ^= 1;
  const auto fresh = choose();
  ASSERT_TRUE(fresh.ok());
  EXPECT_FALSE(fresh->from_plan_cache);
  EXPECT_GT(priced * 10, at_first * 8);
}

TEST(LeastOfPlan, IsBelowSimulatedTimes) {
  const auto check = [](const train::TrainingPlan& plan, std::initializer_list<std::string_view> texts) {
    const cluster::Cluster slow = gpus(4, 1e9);
    const Machine on = machine(slow);
    Evaluator evaluator(plan.graph, on);
    for (const std::string_view text : texts) {
      SCOPED_TRACE(text);
      const std::vector<Distribution> one = {distribute::read_distribution(text).value()};
      const Least least = evaluator.lower_bounds_of(one).front();
      EXPECT_EQ(evaluator.estimates(), 0);
      Evaluator other(plan.graph, on);
      const auto simulated = other.estimate(one.front());
      ASSERT_TRUE(simulated.ok()) << simulated.error().message;
      EXPECT_GT(least.seconds, simulated->seconds * 0.2);
      EXPECT_LE(least.seconds, simulated->seconds * 1.0001);
      EXPECT_GT(least.bytes, simulated->peak_bytes * 0.2);
      EXPECT_LE(least.bytes, simulated->peak_bytes);
    }
  };
  check(pooled(),
        {"gpu=4: slice b", "gpu=4: slice f", "gpu=4: slice f, b", "gpu=4: slice b, shard parameters",
         "gpu_a=2: slice b; gpu_b=2: slice f", "gpu=4: slice s"});
  check(training_plan("gpt2", {{"b", 8, {}},
                               {"s", 64, {}},
                               {"d", 64, {}},
                               {"h", 4, {}},
                               {"v", 131, {}},
                               {"p", 64, {}},
                               {"layers", 9, {}}}),
        {"gpu=4: slice b", "gpu=4: slice h, f, v, s", "gpu=4: slice b, shard optimizer",
         "gpu_a=2: slice b, shard parameters; gpu_b=2: slice f, h, v"});
}

TEST(Evaluator, CountsAPlanOnceUnderAnyName) {
  const train::TrainingPlan plan = pooled();
  const cluster::Cluster pod = gpus(4, 1e10);
  Evaluator evaluator(plan.graph, machine(pod));
  std::vector<Distribution> all;
  for (const std::string_view text : {"gpu=4: slice b", "gpu=4: slice b, f", "gpu=4: slice f"})
    all.push_back(distribute::read_distribution(text).value());
  const std::vector<Least> least = evaluator.lower_bounds_of(all);
  EXPECT_EQ(least[0].seconds, least[1].seconds);
  EXPECT_FALSE(evaluator.is_repeated(all[0]));
  EXPECT_TRUE(evaluator.is_repeated(all[1]));
  EXPECT_EQ(evaluator.ruled_out(), 2);
  ASSERT_TRUE(evaluator.estimate(all[1]).ok());
  EXPECT_TRUE(evaluator.knows(all[0]));
  EXPECT_EQ(evaluator.estimates(), 1);
  EXPECT_EQ(evaluator.ruled_out(), 1);
}

// Plans that lower bounds rule out could not have won.
TEST(Descend, FindsTheSameWithoutBounds) {
  const train::TrainingPlan plan = pooled();
  const cluster::Cluster slow = gpus(8, 1e9);
  const auto found = [&](const Machine& on, double memory) {
    return choose_distribution(plan.graph, slow, on,
                               {.memory_bytes = memory,
                                .budget = {.estimates = 2000},
                                .strategy = &descend(),
                                .alternatives = false});
  };
  for (const double memory : {1e12, 1.5e8}) {
    const auto with = found(machine(slow), memory), without = found(machine_by_figures(slow), memory);
    ASSERT_EQ(with.ok(), without.ok());
    if (!with.ok()) continue;
    EXPECT_EQ(with->outcome.ended, Ended::settled);
    EXPECT_LT(with->outcome.estimates, without->outcome.estimates);
    EXPECT_GT(with->outcome.ruled_out, 0);
    EXPECT_NEAR(with->chosen.prediction.seconds / without->chosen.prediction.seconds, 1, 1e-9)
        << print(with->distribution) << " | " << print(without->distribution);
  }
}

TEST(LowerBound, IsSetByTheScarcestResource) {
  const auto bound = [](std::int64_t batch, std::int64_t hidden, double flops, double memory) {
    const train::TrainingPlan plan = training_plan("digits_mlp", {{"b", batch, {}}, {"f", hidden, {}}});
    cluster::Cluster pod = gpus(4, 1e10, flops);
    pod.device.memory_bytes_per_second = memory;
    const LowerBound found = lower_bound(plan.graph, pod);
    Evaluator evaluator(plan.graph, machine(pod));
    for (const std::string_view text :
         {"gpu=4: slice b", "gpu=4: slice f", "gpu=4: slice b, shard parameters"})
      EXPECT_LE(found.seconds, evaluator.estimate(distribute::read_distribution(text).value())->seconds);
    return found.why;
  };
  EXPECT_EQ(bound(4096, 2048, 1e12, 2e12), "its arithmetic at the peak rate of 4 gpu");
  EXPECT_EQ(bound(4, 4096, 100e12, 1e11),
            "parameters and optimizer states read and written at the memory bandwidth of 4 gpu");
  EXPECT_EQ(bound(512, 32, 1e12, 2e12), "one message, without which a single gpu would compute everything");
}

}  // namespace
}  // namespace weft::search
