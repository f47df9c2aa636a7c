// Which layers to recompute and where to split stages: close to exhaustive search, and faster than
// the same choice for all layers.
#include "weft/planner/search/pipeline/choose_layers.h"

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <random>
#include <set>

#include "distribute_case.h"
#include "search_case.h"
#include "weft/parallel/pipeline/library.h"
#include "weft/planner/search/optimize.h"
#include "weft/planner/search/pipeline/choose_pipeline.h"
#include "weft/planner/search/pipeline/cut_unequal.h"

namespace weft::search {
namespace {

struct Parts {
  PartCosts kept, again;
  std::vector<std::string> layers;
};

// An embedding, layers of one part each, and a head.
Parts some_parts(std::mt19937& random, std::size_t count) {
  Parts made;
  for (std::size_t p = 0; p < count; ++p) {
    const bool is_layer = p > 0 && p + 1 < count;
    PartCost cost;
    cost.forward = 1 + 0.25 * static_cast<double>(random() % 4);
    cost.backward = cost.weight = cost.forward;
    cost.kept = 20 + static_cast<double>(random() % 20);
    cost.parameters = 10;
    cost.working = 1;
    made.kept.push_back(cost);
    if (is_layer) {
      cost.backward += cost.forward;
      cost.kept = 4;
      cost.working = 5;
    }
    made.again.push_back(cost);
    made.layers.push_back(is_layer ? "block." + std::to_string(p - 1) : std::string());
  }
  return made;
}

// The best of all sets of layers with all partitions into three runs.
std::optional<double> best_of_all(const Parts& parts, const Unfolded& order, double room) {
  const std::size_t count = parts.kept.size();
  std::optional<double> best;
  for (std::uint32_t set = 0; set < 1u << (count - 2); ++set) {
    PartCosts costs = parts.kept;
    for (std::size_t p = 1; p + 1 < count; ++p)
      if ((set >> (p - 1)) & 1) costs[p] = parts.again[p];
    const StagedCosts staged(costs, room);
    for (std::size_t a = 1; a + 1 < count; ++a)
      for (std::size_t b = a + 1; b < count; ++b) {
        const auto price = estimate_pipeline(staged, order, {a, b, count}, {}, Detail::sums);
        if (price.ok() && price->fits && (!best || price->seconds < *best)) best = price->seconds;
      }
  }
  return best;
}

TEST(ChooseLayers, IsCloseToExhaustiveSearch) {
  std::mt19937 random(5);
  const auto order = unfold({3, 1, 8, pipeline::find_schedule("1f1b").value()}).value();
  int chosen = 0;
  for (int round = 0; round < 12; ++round) {
    const Parts parts = some_parts(random, 8);
    const double room = 120 + 20.0 * static_cast<double>(random() % 8);
    const auto found = choose_layers(parts.kept, parts.again, parts.layers, order, room);
    const std::optional<double> best = best_of_all(parts, order, room);
    if (!found) continue;
    ++chosen;
    // As in the search: with the partition they were chosen for, or the most balanced one.
    const StagedCosts costs(found->costs, room);
    auto price = estimate_pipeline(costs, order, found->cuts, {}, Detail::sums);
    ASSERT_TRUE(price.ok());
    ASSERT_TRUE(price->fits && best) << round;
    if (auto other = estimate_pipeline(costs, order, cut_unequal(costs, order), {}, Detail::sums);
        other.ok() && other->fits && other->seconds < price->seconds)
      price = std::move(other);
    EXPECT_LE(price->seconds, 1.03 * *best) << round;
    const std::set<std::string> names(found->layers.begin(), found->layers.end());
    for (std::size_t p = 0; p < parts.kept.size(); ++p)
      EXPECT_EQ(found->costs[p].backward,
                (names.contains(parts.layers[p]) ? parts.again : parts.kept)[p].backward);
  }
  EXPECT_GT(chosen, 6);
}

TEST(ChooseLayers, IsEmptyIfAllCanBeKeptOrNothingFits) {
  std::mt19937 random(1);
  const Parts parts = some_parts(random, 8);
  const auto order = unfold({3, 1, 8, pipeline::find_schedule("1f1b").value()}).value();
  EXPECT_FALSE(choose_layers(parts.kept, parts.again, parts.layers, order, 1e9));
  EXPECT_FALSE(choose_layers(parts.kept, parts.again, parts.layers, order, 20));
}

// A small GPT of eight layers on four devices with links so slow that stages pay off.
class SomeLayers : public ::testing::Test {
 protected:
  SomeLayers() : pod_{"pod", some_gpu(1e12), {}} {
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
                                                          {"s", 128, {}},
                                                          {"d", 64, {}},
                                                          {"h", 4, {}},
                                                          {"v", 128, {}},
                                                          {"p", 128, {}},
                                                          {"layers", 8, {}}}))
        .first->second.graph;
  }

  Result<ChosenPipeline> with(const train::Recompute& what) {
    auto distribution = distribute::read_distribution("gpu=4: stage; micro=8").value();
    distribution.recompute = what;
    return estimate_given(problem_, distribution);
  }

  cluster::Cluster pod_;
  Machine machine_;
  std::map<std::int64_t, train::TrainingPlan> plans_;
  PipelineProblem problem_;
};

// Recomputed layers cost the same as in a plan that recomputes all, and so do the others.
TEST_F(SomeLayers, CostTheSameInAMixedPlan) {
  const train::Recompute two{.layers = false, .selective = false, .names = {"gpt_block.0", "gpt_block.5"}};
  const PartEstimator some(plan(4), two), all(plan(4), {.layers = true}), none(plan(4));
  const auto on = distribute::read_distribution("gpu=4: slice b").value();
  const auto costs = some.micro_batch(on, machine_), again = all.micro_batch(on, machine_),
             kept = none.micro_batch(on, machine_);
  ASSERT_TRUE(costs.ok() && again.ok() && kept.ok());
  std::size_t repeated = 0;
  for (std::size_t p = 0; p < some.count(); ++p) {
    const std::string& layer = some.layer_names()[p];
    const bool repeats = layer == "gpt_block.0" || layer == "gpt_block.5";
    repeated += repeats;
    EXPECT_EQ((*costs)[p].kept, (repeats ? *again : *kept)[p].kept) << some.name(p);
  }
  EXPECT_GT(repeated, 1u);
  // The actual plan, without folding.
  const auto exact_plan = train::recompute(plan(4), two);
  ASSERT_TRUE(exact_plan.ok());
  const PartEstimator exact(exact_plan->graph);
  const auto exact_costs = exact.micro_batch(on, machine_);
  ASSERT_TRUE(exact_costs.ok());
  double work = 0, exact_work = 0, held = 0, exact_held = 0;
  for (std::size_t p = 0; p < some.count(); ++p) {
    work += (*costs)[p].work(), exact_work += (*exact_costs)[p].work();
    held += (*costs)[p].kept, exact_held += (*exact_costs)[p].kept;
  }
  EXPECT_NEAR(work, exact_work, 0.01 * exact_work);
  EXPECT_NEAR(held, exact_held, 0.02 * exact_held);
}

// With memory between selective and full recomputation, the search recomputes some layers, which is
// faster than all. With the stage off it does not.
TEST_F(SomeLayers, AreChosenBySearch) {
  const auto selective = with({.selective = true}), layers = with({.layers = true});
  ASSERT_TRUE(selective.ok() && layers.ok());
  ASSERT_LT(layers->priced.peak_bytes, 0.9 * selective->priced.peak_bytes);
  problem_.fixed.slices = {};
  problem_.memory_bytes = (layers->priced.peak_bytes + 2 * selective->priced.peak_bytes) / 3;
  const auto found = choose_pipeline(problem_);
  ASSERT_TRUE(found.ok()) << found.error().message;
  problem_.off = {std::string(kRecomputeStage)};
  const auto without = choose_pipeline(problem_);
  ASSERT_TRUE(without.ok()) << without.error().message;
  EXPECT_FALSE(found->distribution.recompute.names.empty()) << print(found->distribution);
  EXPECT_TRUE(without->distribution.recompute.names.empty()) << print(without->distribution);
  EXPECT_TRUE(found->fits);
  EXPECT_LT(found->priced.seconds, without->priced.seconds);
}

}  // namespace
}  // namespace weft::search
