// Pipelined steps: partitions are optimal, costs match formulas where those apply, and the search
// is deterministic, within memory, and no worse than tensor x pipeline x data.
#include "weft/planner/search/pipeline/choose_pipeline.h"

#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <optional>
#include <random>

#include "distribute_case.h"
#include "search_case.h"
#include "thorough.h"
#include "weft/parallel/pipeline/library.h"
#include "weft/planner/search/pipeline/cut_unequal.h"
#include "weft/planner/search/pipeline/stage_mesh_search.h"

namespace weft::search {
namespace {

using distribute::Distribution;
using distribute::read_distribution;
using distribute::training_plan;

PartCosts alike(std::size_t parts, double forward, double backward, double weight) {
  PartCost one;
  one.forward = forward;
  one.backward = backward;
  one.weight = weight;
  one.kept = 10;
  one.parameters = 100;
  one.working = 1;
  return PartCosts(parts, one);
}

double longest(const PartCosts& costs, const std::vector<std::size_t>& ends) {
  double most = 0;
  for (std::size_t k = 0, from = 0; k < ends.size(); from = ends[k++]) {
    double work = 0;
    for (std::size_t p = from; p < ends[k]; ++p) work += costs[p].work();
    most = std::max(most, work);
  }
  return most;
}

// The best of all partitions.
double least_longest(const PartCosts& costs, std::size_t from, std::size_t runs) {
  if (runs == 1) {
    double work = 0;
    for (std::size_t p = from; p < costs.size(); ++p) work += costs[p].work();
    return work;
  }
  double best = 1e300, work = 0;
  for (std::size_t end = from + 1; end + runs - 1 <= costs.size(); ++end) {
    work += costs[end - 1].work();
    best = std::min(best, std::max(work, least_longest(costs, end, runs - 1)));
  }
  return best;
}

TEST(CutParts, MatchesExhaustiveSearch) {
  std::mt19937 random(7);
  for (int round = 0; round < 60; ++round) {
    PartCosts costs(2 + random() % 9);
    for (PartCost& cost : costs) cost.forward = static_cast<double>(1 + random() % 20);
    const std::size_t runs = 1 + random() % costs.size();
    const std::vector<std::size_t> ends = cut_parts(costs, runs);
    ASSERT_EQ(ends.size(), runs);
    EXPECT_EQ(ends.back(), costs.size());
    EXPECT_DOUBLE_EQ(longest(costs, ends), least_longest(costs, 0, runs));
  }
}

Result<PipelineEstimate> priced(const PartCosts& costs, std::string_view schedule, std::int32_t stages,
                                std::int32_t chunks, std::int64_t micro_batches) {
  WEFT_TRY(text, pipeline::find_schedule(schedule));
  WEFT_TRY(order, unfold({stages, chunks, micro_batches, text}));
  const auto cuts = cut_parts(costs, static_cast<std::size_t>(order.schedule.positions()));
  return estimate_pipeline(costs, order, cuts, {});
}

TEST(PipelineCost, MatchesTheFormulaForEqualStages) {
  const PartCosts costs = alike(8, 1, 1, 1);
  const auto plain = priced(costs, "1f1b", 4, 1, 8), chunked = priced(costs, "interleaved", 4, 2, 8);
  ASSERT_TRUE(plain.ok() && chunked.ok());
  EXPECT_DOUBLE_EQ(plain->seconds, 6 * (8 + 3));
  EXPECT_DOUBLE_EQ(plain->filling, 6 * 3);
  EXPECT_DOUBLE_EQ(chunked->seconds, 6 * 8 + 6 * 3 / 2.0);
  // Two parts, and each stage nearer to the first has one more micro-batch in flight.
  EXPECT_DOUBLE_EQ(plain->stages[0].memory.total(), 2 * 100 + 4 * 2 * 10 + 1);
  EXPECT_DOUBLE_EQ(plain->stages[3].memory.total(), 2 * 100 + 1 * 2 * 10 + 1);
  EXPECT_EQ(plain->fullest, 0u);
}

// The same totals, without the breakdown.
TEST(PipelineCost, TotalsMatchTheDetailedCost) {
  PartCosts costs = alike(12, 1, 2, 1);
  costs.front().forward = 3;
  costs.front().sent = 4;
  const auto text = pipeline::find_schedule("interleaved").value();
  const auto order = unfold({3, 2, 6, text}).value();
  const auto cuts = cut_parts(costs, 6);
  const cost::MeshLink wire{.latency_seconds = 0.5, .bytes_per_second = 10};
  const auto whole = estimate_pipeline(costs, order, cuts, wire),
             sums = estimate_pipeline(costs, order, cuts, wire, Detail::sums);
  ASSERT_TRUE(whole.ok() && sums.ok());
  EXPECT_EQ(whole->seconds, sums->seconds);
  EXPECT_EQ(whole->peak_bytes, sums->peak_bytes);
  EXPECT_EQ(whole->fullest, sums->fullest);
  EXPECT_GT(whole->transferring, 0);
  EXPECT_TRUE(sums->price.slots.empty());
}

TEST(PipelineCost, IsNotBelowTheBound) {
  std::mt19937 random(3);
  for (int round = 0; round < 20; ++round) {
    PartCosts costs = alike(12, 1, 1, 1);
    for (PartCost& cost : costs) {
      cost.forward = 1 + 0.1 * static_cast<double>(random() % 10);
      cost.update = 0.1;
    }
    for (const std::string_view name : {"1f1b", "interleaved", "zb_h1", "zb_h2", "zb_v"}) {
      const auto text = pipeline::find_schedule(name).value();
      const std::int32_t chunks = chunks_of(*text, 1);
      const auto price = priced(costs, name, 3, chunks, 6);
      ASSERT_TRUE(price.ok()) << name;
      EXPECT_GE(price->seconds, least_seconds(costs, {3, chunks, 6, text}) * (1 - 1e-12)) << name;
      EXPECT_GE(price->peak_bytes, least_bytes(costs, {3, chunks, 6, text})) << name;
    }
  }
}

// Stages of three devices, one of which is faster and one smaller than the others.
StagedCosts of_three_kinds(std::mt19937& random, std::size_t parts, double room) {
  PartCosts slow = alike(parts, 1, 1, 1);
  for (PartCost& cost : slow) cost.forward = 1 + 0.25 * static_cast<double>(random() % 8);
  PartCosts fast = slow;
  for (PartCost& cost : fast) cost.forward /= 2.5, cost.backward /= 2.5, cost.weight /= 2.5;
  StagedCosts made;
  made.kinds = {{slow, room, "slow"}, {fast, 2 * room, "fast"}, {slow, 0.7 * room, "small"}};
  made.of_stage = {0, 1, 2};
  return made;
}

// The best of all partitions into three runs.
std::optional<double> exact_split(const StagedCosts& costs, const Unfolded& order) {
  std::optional<double> best;
  const std::size_t parts = costs.kinds.front().costs.size();
  for (std::size_t a = 1; a + 1 < parts; ++a)
    for (std::size_t b = a + 1; b < parts; ++b) {
      const auto price = estimate_pipeline(costs, order, {a, b, parts}, {}, Detail::sums);
      if (price.ok() && price->fits && (!best || price->seconds < *best)) best = price->seconds;
    }
  return best;
}

TEST(CutUnequal, IsWithinOnePercentOfTheOptimum) {
  std::mt19937 random(11);
  int tight = 0;
  for (int round = 0; round < 60; ++round) {
    const double room = round % 2 == 0 ? 1e9 : 700 + 10.0 * static_cast<double>(random() % 80);
    const StagedCosts costs = of_three_kinds(random, 6 + random() % 9, room);
    const auto text = pipeline::find_schedule(round % 3 == 0 ? "zb_h1" : "1f1b").value();
    const auto order = unfold({3, 1, 2 + static_cast<std::int64_t>(random() % 12), text}).value();
    const std::optional<double> exact = exact_split(costs, order);
    const auto cuts = move_cuts(costs, order, cut_unequal(costs, order), {});
    const auto price = estimate_pipeline(costs, order, cuts, {});
    ASSERT_TRUE(price.ok());
    EXPECT_EQ(price->fits, exact.has_value()) << round;
    if (exact) EXPECT_LE(price->seconds, 1.01 * *exact) << round;
    if (round % 2 == 1) tight += exact.has_value();
    EXPECT_GE(price->seconds * (1 + 1e-12), least_seconds(costs, {3, 1, order.schedule.micro_batches, text}));
  }
  EXPECT_GT(tight, 5);
}

// A faster device gets more of the parts; with equal parts, the step is slower.
TEST(CutUnequal, DividesBySpeed) {
  StagedCosts costs;
  costs.kinds = {{alike(12, 1, 1, 1), 1e9, "slow"}, {alike(12, 0.5, 0.5, 0.5), 1e9, "fast"}};
  costs.of_stage = {0, 1, 0};
  const auto order = unfold({3, 1, 8, pipeline::find_schedule("1f1b").value()}).value();
  EXPECT_EQ(cut_unequal(costs, order), (std::vector<std::size_t>{3, 9, 12}));
  const auto equal = estimate_pipeline(costs, order, {4, 8, 12}, {}),
             shared = estimate_pipeline(costs, order, {3, 9, 12}, {});
  EXPECT_LT(shared->seconds, equal->seconds);
  EXPECT_EQ(shared->stages[1].device, "fast");
}

// A small GPT on two nodes of four devices.
class SmallProblem : public ::testing::Test {
 protected:
  SmallProblem() : pod_{"pod", some_gpu(100e12), {}} {
    cluster::Link across{.name = "ib", .bytes_per_second = 1e9, .latency_seconds = 5e-6};
    cluster::Link inside{.name = "nvlink", .bytes_per_second = 1e11, .latency_seconds = 2e-6};
    pod_.axes = {{"node", 2, across}, {"gpu", 4, inside}};
    problem_.plan = &plan(16);
    problem_.batch = "b";
    problem_.rows = 16;
    problem_.plan_of = [this](std::int64_t rows) -> Result<const plan::Graph*> { return &plan(rows); };
    problem_.cluster = &pod_;
    machine_ = machine_with_peak(pod_);
    problem_.machine = &machine_;
  }

  const plan::Graph& plan(std::int64_t rows) {
    auto found = plans_.find(rows);
    if (found == plans_.end())
      found = plans_
                  .emplace(rows, training_plan("gpt2", {{"b", rows, {}},
                                                        {"s", 64, {}},
                                                        {"d", 64, {}},
                                                        {"h", 4, {}},
                                                        {"v", 128, {}},
                                                        {"p", 64, {}},
                                                        {"layers", 8, {}}}))
                  .first;
    return found->second.graph;
  }

  Result<ChosenPipeline> given(std::string_view text) {
    WEFT_TRY(distribution, read_distribution(text));
    return estimate_given(problem_, distribution);
  }

  cluster::Cluster pod_;
  Machine machine_;
  std::map<std::int64_t, train::TrainingPlan> plans_;
  PipelineProblem problem_;
};

TEST_F(SmallProblem, FoldedPartsCostTheSame) {
  const PartEstimator parts(plan(4));
  ASSERT_GT(parts.folded_layers(), 0);
  const Machine machine = machine_with_peak(pod_);
  const auto on = read_distribution("node=2: slice b; gpu=4: slice h, f, v").value();
  const auto costs = parts.micro_batch(on, machine);
  const auto ends = parts.end_of_step(on, machine, true);
  ASSERT_TRUE(costs.ok() && ends.ok());
  ASSERT_EQ(costs->size(), parts.count());
  const auto all = Evaluator(plan(4), machine).predict(on);
  ASSERT_TRUE(all.ok());
  double passes = 0, update = 0, parameters = 0;
  for (std::size_t p = 0; p < costs->size(); ++p) {
    passes += (*costs)[p].work();
    update += std::max((*ends)[p].update, (*ends)[p].reducing);
    parameters += (*ends)[p].parameters;
    EXPECT_GT((*costs)[p].forward, 0) << parts.name(p);
    EXPECT_GT((*costs)[p].weight, 0) << parts.name(p);
  }
  // A step overlaps all-reduces with passes: its time is between the passes alone and the sum of
  // both.
  EXPECT_LT(passes, 1.1 * all->prediction.seconds);
  EXPECT_GT(passes + update, 0.9 * all->prediction.seconds);
  // The tied embedding is at both ends.
  EXPECT_GT(parameters, all->prediction.memory.parameters);
}

// In a causal model with a sliced sequence, the last rank attends to the most keys, and all ranks
// wait for it.
TEST_F(SmallProblem, PartsCostTheTimeOfTheBusiestRank) {
  pod_.device = some_gpu(1e9);
  pod_.axes = {{"gpu", 4, pod_.axes[1].link}};
  const Machine machine = machine_with_peak(pod_);
  const train::TrainingPlan long_one = training_plan("gpt2", {{"b", 1, {}},
                                                              {"s", 512, {}},
                                                              {"d", 16, {}},
                                                              {"h", 1, {}},
                                                              {"v", 16, {}},
                                                              {"p", 512, {}},
                                                              {"layers", 2, {}}});
  const auto on = read_distribution("gpu=4: slice s").value();
  const PartEstimator parts(long_one.graph);
  const auto costs = parts.micro_batch(on, machine);
  const auto ends = parts.end_of_step(on, machine, true);
  const auto all = Evaluator(long_one.graph, machine).predict(on);
  ASSERT_TRUE(costs.ok() && ends.ok() && all.ok());
  double computing = 0;
  for (std::size_t p = 0; p < costs->size(); ++p) computing += (*costs)[p].computing + (*ends)[p].update;
  EXPECT_NEAR(computing, all->prediction.compute_seconds, 0.05 * computing);
}

// Its gradients go from the last stage to the first, and its updated value returns.
TEST_F(SmallProblem, TiedParametersAreExchangedBetweenStages) {
  const auto staged = given("node=2: slice b; gpu=4: stage; micro=4");
  ASSERT_TRUE(staged.ok()) << staged.error().message;
  const std::vector<StageCost>& stages = staged->priced.stages;
  ASSERT_EQ(stages.size(), 4u);
  const double bytes = 2 * 128 * 64 * 4;  // v d numbers of f32, there and back
  EXPECT_NEAR(stages.front().tied, 2 * 2e-6 + bytes / 1e11, 1e-9);
  EXPECT_EQ(stages.back().tied, stages.front().tied);
  EXPECT_EQ(stages[1].tied, 0);
  EXPECT_EQ(stages[2].tied, 0);
  EXPECT_GE(stages.front().update, stages.front().tied);
}

// Given the actual work of the parts, the partition is the same as by cost; with other work it
// differs.
TEST_F(SmallProblem, PartitionsByGivenWork) {
  const auto distribution = read_distribution("node=2: slice b; gpu=4: stage; micro=4").value();
  const auto work = work_of_parts(problem_, distribution);
  ASSERT_TRUE(work.ok()) << work.error().message;
  const auto own = estimate_given(problem_, distribution);
  problem_.work = *work;
  const auto same = estimate_given(problem_, distribution);
  problem_.work.front() = 1e3;
  const auto other = estimate_given(problem_, distribution);
  ASSERT_TRUE(own.ok() && same.ok() && other.ok());
  EXPECT_LE(own->priced.seconds, same->priced.seconds);
  EXPECT_EQ(other->priced.stages.front().runs.front().count, 1u);
  EXPECT_GT(own->priced.stages.front().runs.front().count, 1u);
}

TEST_F(SmallProblem, IsDeterministicAndNoWorseThanMegatron) {
  const auto first = choose_pipeline(problem_);
  ASSERT_TRUE(first.ok()) << first.error().message;
  ASSERT_TRUE(first->megatron);
  EXPECT_LE(first->priced.seconds, first->megatron->priced.seconds);
  EXPECT_LE(first->least_seconds, first->priced.seconds * 1.001);
  // The chosen plan, when given, is the same plan at the same cost.
  const auto again = estimate_given(problem_, first->distribution);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->priced.seconds, first->priced.seconds);
  // With a time to beat, the search finds the same plan or none.
  problem_.beat_seconds = 1.2 * first->priced.seconds;
  const auto quicker = choose_pipeline(problem_);
  ASSERT_TRUE(quicker.ok()) << quicker.error().message;
  EXPECT_EQ(print(quicker->distribution), print(first->distribution));
  EXPECT_EQ(quicker->priced.seconds, first->priced.seconds);
  EXPECT_LE(quicker->priced_events, first->priced_events);
  problem_.beat_seconds = 0.99 * first->priced.seconds;
  EXPECT_FALSE(choose_pipeline(problem_).ok());
  problem_.beat_seconds = std::numeric_limits<double>::infinity();
  if (!is_thorough()) return;
  // Less memory than the best plan needs leads to another plan that fits, or to an error.
  problem_.memory_bytes = 0.8 * first->priced.peak_bytes;
  const auto tight = choose_pipeline(problem_);
  if (tight.ok())
    EXPECT_LE(tight->priced.peak_bytes, problem_.memory_bytes);
  else
    EXPECT_NE(tight.error().message.find("no plan with stages fits"), std::string::npos)
        << tight.error().message;
}

// Each stage is evaluated on its own mesh, and parts are assigned by their cost on each.
TEST_F(SmallProblem, EvaluatesStagesOnTheirOwnMeshes) {
  const auto model = given("node=2: stage; gpu=4: slice h, f, v; micro=4"),
             batch = given("node=2: stage; gpu=4: slice b; micro=4"),
             both = given("node=2: stage; gpu=4: slice h, f, v, in stage 1 slice b; micro=4");
  ASSERT_TRUE(model.ok() && batch.ok()) << (model.ok() ? batch : model).error().message;
  ASSERT_TRUE(both.ok()) << both.error().message;
  const auto pace = [](const StageCost& stage) {
    return (stage.forward + stage.backward + stage.weight) / static_cast<double>(stage.runs.front().count);
  };
  ASSERT_LT(pace(batch->priced.stages[1]), pace(model->priced.stages[1]));
  EXPECT_GT(both->priced.stages[1].runs.front().count, both->priced.stages[0].runs.front().count);
  EXPECT_LT(both->priced.seconds, model->priced.seconds);
  EXPECT_GT(both->priced.seconds, batch->priced.seconds);
}

TEST_F(SmallProblem, FindsBetterStageMeshes) {
  const auto one = given("node=2: stage; gpu=4: slice h, f, v; micro=4");
  ASSERT_TRUE(one.ok()) << one.error().message;
  const auto found = with_stage_meshes(problem_, *one, {"h", "f", "v"}),
             again = with_stage_meshes(problem_, *one, {"h", "f", "v"});
  ASSERT_TRUE(found && again);
  EXPECT_TRUE(distribute::has_stage_meshes(found->distribution));
  EXPECT_EQ(print(found->distribution), print(again->distribution));
  EXPECT_LT(found->priced.seconds, 0.99 * one->priced.seconds);
  const auto priced = given(print(found->distribution));
  ASSERT_TRUE(priced.ok()) << priced.error().message;
  EXPECT_EQ(priced->priced.seconds, found->priced.seconds);
  // The best plan with a single mesh does not become worse.
  const auto batch = given("node=2: stage; gpu=4: slice b; micro=4");
  if (const auto other = with_stage_meshes(problem_, *batch, {"h", "f", "v"}))
    EXPECT_LT(other->priced.seconds, batch->priced.seconds);
}

// Two nodes, the second with devices four times as fast.
TEST_F(SmallProblem, BalancesStagesOfUnequalDevices) {
  cluster::Device slow = some_gpu(10e12), fast = some_gpu(40e12);
  slow.name = "slow", fast.name = "fast";
  slow.memory_bytes = 16e9, fast.memory_bytes = 64e9;
  const cluster::Device both[] = {slow, fast};
  pod_.device = cluster::weakest_of(both);
  pod_.kinds = {{1, slow}, {1, fast}};
  machine_ = machine_with_peak(pod_);
  cluster::Cluster of_slow{"pod", slow, pod_.axes}, of_fast{"pod", fast, pod_.axes};
  const Machine machine_slow = machine_with_peak(of_slow), machine_fast = machine_with_peak(of_fast);
  problem_.machine_with = [&](const cluster::Device& device) {
    return device.name == "fast" ? &machine_fast : &machine_slow;
  };
  problem_.memory_bytes = pod_.device.memory_bytes;
  const auto staged = given("node=2: stage; gpu=4: slice b; micro=4");
  ASSERT_TRUE(staged.ok()) << staged.error().message;
  const std::vector<StageCost>& stages = staged->priced.stages;
  EXPECT_EQ(stages[0].device, "slow");
  EXPECT_EQ(stages[1].device, "fast");
  EXPECT_LT(stages[0].runs.front().count, stages[1].runs.front().count);
  EXPECT_EQ(staged->priced.room, staged->priced.fullest == 0 ? 16e9 : 64e9);
  // Stages within a node have devices of both kinds and run at the speed of the slow ones.
  const auto within = given("node=2: slice b; gpu=4: stage; micro=4");
  ASSERT_TRUE(within.ok());
  EXPECT_EQ(within->priced.stages[0].device, "");
  const auto chosen = choose_pipeline(problem_);
  ASSERT_TRUE(chosen.ok()) << chosen.error().message;
  EXPECT_LE(chosen->priced.seconds, std::min(staged->priced.seconds, within->priced.seconds) * 1.001);
  // If the fast devices are as slow as the others, they bring nothing.
  problem_.machine_with = [&](const cluster::Device&) { return &machine_slow; };
  const auto slowed = given("node=2: stage; gpu=4: slice b; micro=4");
  ASSERT_TRUE(slowed.ok());
  EXPECT_GT(slowed->priced.seconds, staged->priced.seconds);
}

TEST_F(SmallProblem, ReportsInvalidDistributions) {
  const auto message = [&](std::string_view text) {
    const auto found = given(text);
    return found.ok() ? "" : found.error().message + " | " + found.error().hint;
  };
  EXPECT_EQ(message("node=2: stage; gpu=4: slice b; micro=3"),
            "micro-batches need equal numbers of rows: 3 do not divide b = 16 | use micro=2");
  EXPECT_EQ(message("node=2: stage; gpu=4: slice b; micro=4; schedule zb_h3").substr(0, 24),
            "unknown schedule: zb_h3 ");
  EXPECT_NE(message("node=2: stage, chunks=40; gpu=4: slice b; micro=4; schedule interleaved")
                .find("too many stages"),
            std::string::npos);
  EXPECT_NE(
      message("node=2: stage, chunks=2; gpu=4: slice b; micro=4; schedule 1f1b").find("one chunk per stage"),
      std::string::npos);
  problem_.fixed.slices.push_back({"b", "node"});
  EXPECT_NE(message("node=2: stage; gpu=4: slice b; micro=4").find("a hint slices b on node"),
            std::string::npos);
}

}  // namespace
}  // namespace weft::search
