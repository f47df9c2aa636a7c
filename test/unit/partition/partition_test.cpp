// Partitioning: every search compared with all splits of small random graphs, evaluated by
// independent checks.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "exhaustive.h"
#include "weft/base/random.h"
#include "weft/parallel/partition/choices.h"
#include "weft/parallel/partition/hybrid.h"
#include "weft/parallel/partition/placement.h"
#include "weft/parallel/partition/steady.h"

namespace weft::partition {
namespace {

constexpr double kNone = std::numeric_limits<double>::infinity();

using Edges = std::vector<std::pair<std::int32_t, std::int32_t>>;

double number(Random& random, std::uint64_t most) { return static_cast<double>(random.below(most + 1)); }

Edges random_edges(Random& random, std::int32_t nodes) {
  Edges edges;
  for (std::int32_t to = 1; to < nodes; ++to)
    for (std::int32_t from = 0; from < to; ++from)
      if (random.below(5) < 2) edges.emplace_back(from, to);
  return edges;
}

TEST(Ideals, ADiamondHasSixIdeals) {
  const Dag diamond{4, {{0, 1}, {0, 2}, {1, 3}, {2, 3}}};
  const std::vector<std::int32_t> order = {0, 1, 2, 3};
  const Ideals ideals = ideals_of(diamond, order, 100);
  EXPECT_EQ(ideals.count(), 6);
  EXPECT_TRUE(ideals.complete());
  EXPECT_TRUE(ideals.within(ideals.none(), ideals.all()));
  EXPECT_FALSE(ideals.within(ideals.all(), ideals.none()));
  EXPECT_EQ(ideals.between(ideals.none(), ideals.all()), order);
}

TEST(Ideals, TooManyReduceToThoseOfOneOrder) {
  const Dag apart{20, {}};  // 2^20 ideals
  std::vector<std::int32_t> order(20);
  for (std::int32_t i = 0; i < 20; ++i) order[slot(i)] = 19 - i;
  const Ideals ideals = ideals_of(apart, order, 1000);
  EXPECT_EQ(ideals.count(), 21);
  EXPECT_FALSE(ideals.complete());
  EXPECT_TRUE(ideals.has(1, 19));
}

TEST(Ideals, ACycleHasNoOrder) {
  const auto order = topological_order({3, {{0, 1}, {1, 2}, {2, 1}}});
  ASSERT_FALSE(order.ok());
  EXPECT_EQ(order.error().message, "expected no cycle, found one before or through node 1");
}

TEST(Choices, PicksTheCheapestThatFit) {
  Random random(7);
  for (int round = 0; round < 300; ++round) {
    Items items(1 + random.below(5));
    for (auto& options : items) {
      options.resize(1 + random.below(3));
      for (Option& option : options) option = {number(random, 9), number(random, 9)};
    }
    const double room = number(random, 30);
    double least = kNone;
    std::vector<std::size_t> at(items.size());
    for (bool more = true; more;) {
      double cost = 0, bytes = 0;
      for (std::size_t i = 0; i < items.size(); ++i) {
        cost += items[i][at[i]].cost;
        bytes += items[i][at[i]].bytes;
      }
      if (bytes <= room) least = std::min(least, cost);
      more = false;
      for (std::size_t i = 0; i < items.size() && !more; ++i) {
        more = ++at[i] < items[i].size();
        if (!more) at[i] = 0;
      }
    }
    const Choices greedy = choose(items, room);
    const Choices exact = choose_exactly(items, room, greedy, 100'000);
    EXPECT_EQ(exact.cost, least);
    if (least == kNone) continue;
    EXPECT_LE(greedy.bound, least + 1e-9);
    EXPECT_GE(greedy.cost, least);
  }
}

// A path of three nodes on two accelerators: 4 | 3 + 2, with a transfer of 1 on both sides.
TEST(Placement, ATransferCostsOnBothSides) {
  Placement placement;
  placement.nodes.resize(3);
  const double times[] = {4, 3, 2};
  for (std::int32_t i = 0; i < 3; ++i) {
    placement.nodes[slot(i)].id = i;
    placement.nodes[slot(i)].class_of = i;
    placement.nodes[slot(i)].on_accelerator = times[i];
    placement.nodes[slot(i)].send = 1;
  }
  placement.edges = {{0, 1}, {1, 2}};
  placement.accelerators = 2;
  placement.memory = 1;
  const auto answer = place(placement);
  ASSERT_TRUE(answer.ok());
  EXPECT_DOUBLE_EQ(answer->cost, 6);  // 3 + 2 + 1
  EXPECT_EQ(answer->stages.size(), 2u);
}

TEST(Placement, MatchesExhaustiveSearch) {
  Random random(1);
  for (int round = 0; round < 60; ++round) {
    const auto count = static_cast<std::int32_t>(2 + random.below(5));
    Placement placement;
    placement.edges = random_edges(random, count);
    placement.accelerators = static_cast<std::int32_t>(1 + random.below(2));
    placement.cpus = static_cast<std::int32_t>(random.below(2));
    placement.memory = 4 + number(random, 8);
    for (std::int32_t i = 0; i < count; ++i)
      placement.nodes.push_back({.id = i,
                                 .on_accelerator = number(random, 4),
                                 .on_cpu = number(random, 9),
                                 .bytes = number(random, 3),
                                 .send = number(random, 2),
                                 .class_of = i,
                                 .backward = false,
                                 .accelerated = random.below(8) > 0});
    double least = kNone;
    const std::int32_t devices = placement.accelerators + placement.cpus;
    each_split(count, placement.edges, devices, [&](const Assignment& split) {
      for (std::uint32_t cpus = 0; cpus < (1u << split.size()); ++cpus) {
        std::vector<PlacementStage> stages;
        for (std::size_t i = 0; i < split.size(); ++i)
          stages.push_back({split[i], ((cpus >> i) & 1) != 0, 0});
        if (const auto cost = judge(placement, stages); cost.ok()) least = std::min(least, *cost);
      }
    });
    const auto answer = place(placement);
    ASSERT_EQ(answer.ok(), least < kNone) << round;
    if (!answer.ok()) continue;
    EXPECT_NEAR(answer->cost, least, 1e-9) << round;
    const auto judged = judge(placement, answer->stages);
    ASSERT_TRUE(judged.ok()) << judged.error().message;
    EXPECT_NEAR(*judged, answer->cost, 1e-9);
  }
}

// Backward nodes follow the forward nodes of their class, and classes on a cycle merge into one.
TEST(Placement, ClassesStayTogether) {
  Placement placement;
  for (std::int32_t i = 0; i < 6; ++i)
    placement.nodes.push_back({.id = i,
                               .on_accelerator = 1,
                               .on_cpu = 1,
                               .bytes = 0,
                               .send = 0.25,
                               .class_of = i % 3,
                               .backward = i >= 3,
                               .accelerated = true});
  placement.edges = {{0, 1}, {1, 2}, {2, 5}, {5, 4}, {4, 3}};
  placement.accelerators = 3;
  const auto answer = place(placement);
  ASSERT_TRUE(answer.ok());
  EXPECT_DOUBLE_EQ(answer->cost, 3);  // the middle one: 2, and four transfers
  const auto judged = judge(placement, answer->stages);
  ASSERT_TRUE(judged.ok()) << judged.error().message;
  placement.nodes[2].class_of = placement.nodes[5].class_of =
      0;  // 0 -> 1 -> 2 with 0 and 2 in one class: no split is possible
  const auto whole = place(placement);
  ASSERT_TRUE(whole.ok());
  EXPECT_EQ(whole->stages.size(), 1u);
}

TEST(Placement, RejectsWhatDoesNotFit) {
  Placement placement;
  placement.nodes.resize(1);
  placement.nodes[0].bytes = 2;
  placement.memory = 1;
  const auto answer = place(placement);
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().message, "expected a split that fits the devices, found none");
}

Profile random_profile(Random& random, std::int32_t count) {
  Profile profile;
  profile.edges = random_edges(random, count);
  for (std::int32_t i = 0; i < count; ++i)
    profile.nodes.push_back({std::to_string(i), "layer", number(random, 9), number(random, 9),
                             number(random, 9) * 1e6, number(random, 9) * 1e6});
  return profile;
}

TEST(Steady, MatchesExhaustiveSearch) {
  Random random(2);
  for (int round = 0; round < 40; ++round) {
    const auto count = static_cast<std::int32_t>(2 + random.below(4));
    const Profile profile = random_profile(random, count);
    const std::vector<Level> levels = {{static_cast<std::int32_t>(1 + random.below(4)), 1e9}};
    double least = kNone;
    each_split(count, profile.edges, levels[0].machines, [&](const Assignment& split) {
      std::vector<SteadyStage> stages;
      for (const auto& nodes : split) stages.push_back({nodes, 1, {}});
      const std::function<void(std::size_t, std::int32_t)> share = [&](std::size_t i, std::int32_t left) {
        if (i + 1 == stages.size()) {
          stages[i].replicas = left;
          if (const auto cost = judge(profile, levels, stages); cost.ok()) least = std::min(least, *cost);
          return;
        }
        for (stages[i].replicas = 1; stages[i].replicas < left; ++stages[i].replicas)
          share(i + 1, left - stages[i].replicas);
      };
      share(0, levels[0].machines);
    });
    const auto answer = cut_steady(profile, levels);
    ASSERT_TRUE(answer.ok());
    EXPECT_NEAR(answer->cost, least, 1e-12) << round;
  }
}

// A level above the first sees one machine where the level below has several.
TEST(Steady, LevelsMatchTheCheck) {
  Random random(3);
  for (int round = 0; round < 20; ++round) {
    const Profile profile = random_profile(random, 8);
    const std::vector<Level> levels = {{2, 1e10}, {3, 1e9}, {2, 2e8}};
    const auto answer = cut_steady(profile, levels);
    ASSERT_TRUE(answer.ok());
    const auto judged = judge(profile, levels, answer->stages);
    ASSERT_TRUE(judged.ok()) << judged.error().message;
    EXPECT_NEAR(*judged, answer->cost, 1e-12);
  }
}

Hybrid random_hybrid(Random& random, std::int32_t count) {
  Hybrid hybrid;
  hybrid.devices = static_cast<std::int32_t>(1 + random.below(4));
  hybrid.micro_batches = 4;
  hybrid.memory = 4 + number(random, 30);
  hybrid.bandwidth = 10;
  std::vector<std::size_t> in(slot(count)), out(slot(count));
  for (const auto& [from, to] : random_edges(random, count)) {
    hybrid.edges.push_back({from, to, number(random, 5)});
    ++out[slot(from)];
    ++in[slot(to)];
  }
  for (std::int32_t i = 0; i < count; ++i) {
    HybridNode node{i, {}};
    for (const std::int32_t degree : {1, 2}) {
      node.degrees.push_back({degree, {}});
      for (int way = 0; way < 2; ++way)
        node.degrees.back().ways.push_back({way == 0 ? "kept" : "recomputed", number(random, 9),
                                            number(random, 9), number(random, 3), number(random, 5),
                                            std::vector<double>(in[slot(i)], number(random, 2)),
                                            std::vector<double>(out[slot(i)], number(random, 2))});
    }
    hybrid.nodes.push_back(std::move(node));
  }
  return hybrid;
}

TEST(HybridStages, MatchesExhaustiveSearch) {
  Random random(5);
  int fitting = 0;
  for (int round = 0; round < 40; ++round) {
    const auto count = static_cast<std::int32_t>(1 + random.below(3));
    const Hybrid hybrid = random_hybrid(random, count);
    double least = kNone;
    each_split(count, hybrid.dag().edges, hybrid.devices, [&](const Assignment& split) {
      std::vector<HybridStage> stages(split.size());
      const std::function<void(std::size_t)> fill = [&](std::size_t i) {
        if (i == stages.size()) {
          if (const auto cost = judge(hybrid, stages); cost.ok()) least = std::min(least, *cost);
          return;
        }
        for (const std::int32_t replicas : {1, 2, 4})
          for (const std::int32_t degree : {1, 2})
            for (std::uint32_t ways = 0; ways < (1u << split[i].size()); ++ways) {
              stages[i] = {split[i], {}, replicas, degree};
              for (std::size_t n = 0; n < split[i].size(); ++n)
                stages[i].ways.push_back(static_cast<std::int32_t>((ways >> n) & 1));
              fill(i + 1);
            }
      };
      fill(0);
    });
    const auto answer = cut_hybrid(hybrid);
    ASSERT_EQ(answer.ok(), least < kNone) << round;
    if (!answer.ok()) continue;
    ++fitting;
    EXPECT_NEAR(answer->cost, least, 1e-8 * std::max(1.0, least)) << round;
    const auto judged = judge(hybrid, answer->stages);
    ASSERT_TRUE(judged.ok()) << judged.error().message;
    EXPECT_NEAR(*judged, answer->cost, 1e-9);
  }
  EXPECT_GT(fitting, 10);
}

}  // namespace
}  // namespace weft::partition
