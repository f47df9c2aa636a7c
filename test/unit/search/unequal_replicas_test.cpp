// Replicas on unequal devices: their numbers of micro-batches are as good as the best of all
// splits.
#include "weft/planner/search/pipeline/unequal_replicas.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "distribute_case.h"
#include "search_case.h"
#include "thorough.h"
#include "weft/parallel/pipeline/pipelined_plan.h"

namespace weft::search {
namespace {

using distribute::Distribution;
using Takes = std::vector<std::int64_t>;

// All ways to divide so many among so many ranks, at least one each.
void each_split(std::int64_t all, std::size_t ranks, Takes& begun,
                const std::function<void(const Takes&)>& see) {
  if (begun.size() + 1 == ranks) {
    begun.push_back(all);
    see(begun);
    begun.pop_back();
    return;
  }
  const auto others = static_cast<std::int64_t>(ranks - begun.size() - 1);
  for (std::int64_t count = 1; count + others <= all; ++count) {
    begun.push_back(count);
    each_split(all - count, ranks, begun, see);
    begun.pop_back();
  }
}

TEST(ShareOut, MatchesExhaustiveSearch) {
  std::mt19937 random(5);
  int limited = 0, impossible = 0;
  for (int round = 0; round < 400; ++round) {
    const std::size_t ranks = 2 + random() % 3;
    const auto all = static_cast<std::int64_t>(std::max<std::size_t>(ranks, 2 + random() % 11));
    std::vector<double> each, fixed;
    Takes room;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      each.push_back(static_cast<double>(1 + random() % 9));
      fixed.push_back(static_cast<double>(random() % 12));
      room.push_back(round % 2 == 0 ? all : static_cast<std::int64_t>(1 + random() % 8));
    }
    const auto seconds = [&](std::size_t rank, std::int64_t count) {
      return count > room[rank] ? std::numeric_limits<double>::infinity()
                                : fixed[rank] + each[rank] * static_cast<double>(count);
    };
    const auto slowest = [&](const Takes& takes) {
      double most = 0;
      for (std::size_t rank = 0; rank < takes.size(); ++rank)
        most = std::max(most, seconds(rank, takes[rank]));
      return most;
    };
    double best = std::numeric_limits<double>::infinity();
    Takes begun;
    each_split(all, ranks, begun, [&](const Takes& takes) { best = std::min(best, slowest(takes)); });
    const Takes found = share_out(all, ranks, seconds);
    ASSERT_EQ(found.size(), ranks);
    EXPECT_EQ(std::accumulate(found.begin(), found.end(), std::int64_t{0}), all);
    EXPECT_GE(*std::ranges::min_element(found), 1);
    EXPECT_EQ(slowest(found), best) << round;
    limited += round % 2 == 1 && std::isfinite(best);
    impossible += std::isinf(best);
  }
  EXPECT_GT(limited, 50);
  EXPECT_GT(impossible, 10);
}

// A small GPT on nodes that each have another kind of device.
class UnequalReplicas : public ::testing::Test {
 protected:
  void make(const std::vector<double>& flops, std::int64_t gpus, std::int64_t rows,
            const std::vector<double>& memory) {
    cluster::Link across{.name = "ib", .bytes_per_second = 1e10, .latency_seconds = 5e-6};
    cluster::Link inside{.name = "nvlink", .bytes_per_second = 1e11, .latency_seconds = 2e-6};
    std::vector<cluster::Device> all;
    pod_ = cluster::Cluster{"pod", some_gpu(flops.front()), {}};
    pod_.axes = {{"node", static_cast<std::int64_t>(flops.size()), across}, {"gpu", gpus, inside}};
    for (std::size_t kind = 0; kind < flops.size(); ++kind) {
      cluster::Device device = some_gpu(flops[kind]);
      device.name = "kind" + std::to_string(kind);
      device.memory_bytes = memory[kind];
      all.push_back(device);
      pod_.kinds.push_back({1, device});
    }
    pod_.device = cluster::weakest_of(all);
    machine_ = machine_with_peak(pod_);
    for (const cluster::Device& device : all) {
      clusters_.insert_or_assign(device.name, cluster::Cluster{"pod", device, pod_.axes});
      machines_.insert_or_assign(device.name, machine_with_peak(clusters_.at(device.name)));
    }
    problem_.plan = &plan(rows);
    problem_.batch = "b";
    problem_.rows = rows;
    problem_.plan_of = [this](std::int64_t part) -> Result<const plan::Graph*> { return &plan(part); };
    problem_.cluster = &pod_;
    problem_.machine = &machine_;
    problem_.machine_with = [this](const cluster::Device& device) { return &machines_.at(device.name); };
    problem_.memory_bytes = pod_.device.memory_bytes;
  }

  const plan::Graph& plan(std::int64_t rows) {
    auto found = plans_.find(rows);
    if (found == plans_.end())
      found = plans_
                  .emplace(rows, distribute::training_plan("gpt2", {{"b", rows, {}},
                                                                    {"s", 32, {}},
                                                                    {"d", 64, {}},
                                                                    {"h", 4, {}},
                                                                    {"v", 128, {}},
                                                                    {"p", 32, {}},
                                                                    {"layers", 2, {}}}))
                  .first;
    return found->second.graph;
  }

  // The best of all splits with these numbers of micro-batches, simulated; none if none fits.
  std::optional<double> best_of_all(const Distribution& given, const std::vector<std::int64_t>& micros) {
    std::optional<double> best;
    for (const std::int64_t micro : micros) {
      Distribution equal = given;
      equal.micro_batches = micro;
      PipelineProblem alike = problem_;
      if (distribute::stage_axis(equal)) alike.work = work_of_parts(problem_, equal).value();
      std::map<std::pair<std::size_t, std::int64_t>, double> known;  // infinite if it does not fit
      const auto seconds = [&](std::size_t place, std::int64_t count) {
        const auto [found, is_new] =
            known.try_emplace({place, count}, std::numeric_limits<double>::infinity());
        if (!is_new) return found->second;
        const auto priced = estimate_with_count(alike, equal, count, &pod_.kinds[place].device);
        EXPECT_TRUE(priced.ok());
        if (priced.ok() && priced->fits) found->second = priced->priced.seconds;
        return found->second;
      };
      const std::int32_t ranks = equal.mesh.axes.front().ranks;
      Takes begun;
      each_split(micro * ranks, static_cast<std::size_t>(ranks), begun, [&](const Takes& takes) {
        double slowest = 0;
        for (std::size_t place = 0; place < takes.size(); ++place)
          slowest = std::max(slowest, seconds(place, takes[place]));
        if (std::isfinite(slowest) && (!best || slowest < *best)) best = slowest;
      });
    }
    return best;
  }

  void expect_best(const std::string& text, const std::vector<std::int64_t>& micros, bool fits) {
    const Distribution given = *distribute::read_distribution(text);
    const auto exact = best_of_all(given, micros);
    ASSERT_EQ(exact.has_value(), fits) << text;
    const auto found = with_unequal_replicas(problem_, given, std::numeric_limits<double>::infinity());
    ASSERT_TRUE(found.ok()) << found.error().message;
    ASSERT_EQ(found->has_value(), fits) << text;
    if (!fits) return;
    const ChosenPipeline& chosen = **found;
    EXPECT_LE(chosen.priced.seconds, 1.01 * *exact) << print(chosen.distribution);
    EXPECT_GE(chosen.priced.seconds, *exact) << print(chosen.distribution);
    // The reported time is that of the slowest replica, and the distribution parses and can be
    // built.
    double slowest = 0;
    for (const Replica& replica : chosen.replicas) slowest = std::max(slowest, replica.seconds);
    EXPECT_EQ(slowest, chosen.priced.seconds);
    EXPECT_EQ(*distribute::read_distribution(print(chosen.distribution)), chosen.distribution);
  }

  cluster::Cluster pod_{"pod", some_gpu(1e12), {}};
  Machine machine_;
  std::map<std::string, cluster::Cluster> clusters_;
  std::map<std::string, Machine> machines_;
  std::map<std::int64_t, train::TrainingPlan> plans_;
  PipelineProblem problem_;
};

TEST_F(UnequalReplicas, AreWithinOnePercentOfTheOptimum) {
  make({1e11, 3e11}, 1, 16, {80e9, 80e9});
  expect_best("node=2: slice b; micro=2", {2, 4, 8}, true);
  make({1e11, 1.7e11, 5e11}, 1, 12, {80e9, 80e9, 80e9});
  expect_best("node=3: slice b; micro=2", {2, 4}, true);
  if (!is_thorough()) return;
  make({2e11, 1e11, 4e11, 1e11}, 1, 12, {80e9, 80e9, 80e9, 80e9});
  expect_best("node=4: slice b; micro=3", {3}, true);
}

TEST_F(UnequalReplicas, WorkWithStages) {
  make({1e11, 3e11}, 2, 16, {80e9, 80e9});
  expect_best("node=2: slice b; gpu=2: stage; micro=4", {4, 8}, true);
  expect_best("node=2: slice b; gpu=2: stage; micro=4; schedule zb_h1", {4, 8}, true);
}

// gpipe keeps every micro-batch of a replica: the faster device may lack memory for its share by
// speed.
TEST_F(UnequalReplicas, FitTheirMemory) {
  const std::string text = "node=2: slice b; gpu=2: stage; micro=8; schedule gpipe";
  make({1e11, 4e11}, 2, 16, {80e9, 80e9});
  const auto needs = [&](std::int64_t slow, std::int64_t fast) {  // for any total
    Distribution given = *distribute::read_distribution(text);
    given.axes.front().takes = {slow, fast};
    const auto priced = estimate_replicas(problem_, given, 0);
    EXPECT_TRUE(priced.ok());
    return priced->priced.peak_bytes;
  };
  const auto chosen = [&] {
    return with_unequal_replicas(problem_, *distribute::read_distribution(text), 1e9).value().value();
  };
  const ChosenPipeline free = chosen();
  const std::int64_t most = free.replicas[1].takes;
  ASSERT_GT(most, free.replicas[0].takes);
  const double room = needs(1, most - 1) * 1.0001;
  ASSERT_GT(needs(1, most), room);
  make({1e11, 4e11}, 2, 16, {room, room});
  expect_best(text, {8}, true);
  EXPECT_EQ(chosen().replicas[1].takes, most - 1);
  EXPECT_GT(chosen().priced.seconds, free.priced.seconds);
  // Nothing fits the smaller of the two.
  make({1e11, 4e11}, 2, 16, {1e3, 80e9});
  expect_best(text, {8}, false);
}

TEST_F(UnequalReplicas, RejectInvalidNumbers) {
  make({1e11, 3e11}, 2, 16, {80e9, 80e9});
  const auto why = [&](std::string_view text) {
    const auto priced = estimate_given(problem_, *distribute::read_distribution(text));
    return priced.ok() ? "" : priced.error().message;
  };
  EXPECT_EQ(why("node=2: slice b, micro-batches 2:6; gpu=2: slice b; micro=4"), "");
  EXPECT_EQ(why("node=2: slice b, micro-batches 2:5; gpu=2: slice b; micro=4"),
            "ranks along node take 7 micro-batches, and with micro=4 there are 2 x 4");
  EXPECT_EQ(why("node=2: slice b, micro-batches 2:6; gpu=2: slice b, micro-batches 4:4; micro=4"),
            "ranks take unequal numbers of micro-batches along one axis, found node and gpu");
  const std::string moves = why("node=2: slice h, b, micro-batches 2:6; gpu=2: slice b; micro=4");
  EXPECT_NE(moves.find("needs the whole batch at once"), std::string::npos) << moves;
}

TEST_F(UnequalReplicas, AreNotSearchedForEqualDevices) {
  make({1e11, 3e11}, 2, 16, {80e9, 80e9});
  const auto found = [&](std::string_view text, double beat = std::numeric_limits<double>::infinity()) {
    return with_unequal_replicas(problem_, *distribute::read_distribution(text), beat).value().has_value();
  };
  EXPECT_TRUE(found("node=2: slice b; gpu=2; micro=4"));
  EXPECT_FALSE(found("node=2: slice b; gpu=2; micro=4", 1e-9));
  EXPECT_FALSE(found("node=2: slice f; gpu=2: slice b; micro=4"));
  EXPECT_FALSE(found("node=2: stage; gpu=2: slice b; micro=4"));
  pod_.kinds.clear();
  EXPECT_FALSE(found("node=2: slice b; gpu=2; micro=4"));
}

// A schedule that does not exist for every number is left as it is, without an error.
TEST_F(UnequalReplicas, AcceptSchedulesThatNeedCertainNumbers) {
  make({1e11, 3e11}, 2, 16, {80e9, 80e9});
  const auto found = with_unequal_replicas(
      problem_, *distribute::read_distribution("node=2: slice b; gpu=2: stage; micro=4; schedule dualpipe"),
      1e9);
  ASSERT_TRUE(found.ok()) << found.error().message;
  if (*found) EXPECT_TRUE(pipeline::distribute_pipelined(*problem_.plan, (**found).distribution).ok());
}

}  // namespace
}  // namespace weft::search
