// Networks in steps: edges, limits, distances, symmetries.
#include "weft/collectives/synthesis/step_network.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "weft/collectives/synthesis/step_symmetry.h"

namespace weft::synthesis {
namespace {

cluster::Topology devices(int count) {
  cluster::Topology topology;
  for (int i = 0; i < count; ++i) topology.add_node(cluster::NodeKind::device, "gpu " + std::to_string(i));
  topology.devices = count;
  return topology;
}

cluster::Topology ring(int count, double rate = 1e9) {
  cluster::Topology topology = devices(count);
  for (int i = 0; i < count; ++i) topology.add_cable(i, (i + 1) % count, rate, 1e-6);
  return topology;
}

cluster::Topology star(int count) {
  cluster::Topology topology = devices(count);
  const auto hub = topology.add_node(cluster::NodeKind::switch_, "hub");
  for (int i = 0; i < count; ++i) topology.add_cable(i, hub, 3e9, 1e-6);
  return topology;
}

TEST(StepNetwork, ALinkIsAnEdgeWithItsOwnLimit) {
  const auto network = step_network(ring(4));
  ASSERT_TRUE(network.ok());
  EXPECT_EQ(network->edges.size(), 8u);
  EXPECT_EQ(network->limits.size(), 8u);
  for (const StepLimit& limit : network->limits) EXPECT_EQ(limit.capacity, 1);
  EXPECT_EQ(network->round_rate, 1e9);
  EXPECT_EQ(step_distances(*network)[0], (std::vector<std::int32_t>{0, 1, 2, 1}));
}

TEST(StepNetwork, ARoundIsTheCommonDivisorOfRates) {
  cluster::Topology topology = ring(3, 10e9);
  topology.links[0].bytes_per_second = 15e9;
  const auto network = step_network(topology);
  ASSERT_TRUE(network.ok());
  EXPECT_DOUBLE_EQ(network->round_rate, 5e9);
  EXPECT_EQ(network->limits[0].capacity, 3);
  EXPECT_EQ(network->limits[1].capacity, 2);
}

TEST(StepNetwork, RatesWithoutADivisorUseTheSlowest) {
  cluster::Topology topology = ring(3, 10e9);
  topology.links[0].bytes_per_second = 31.4159e9;
  const auto network = step_network(topology);
  ASSERT_TRUE(network.ok());
  EXPECT_DOUBLE_EQ(network->round_rate, 10e9);
  EXPECT_EQ(chunks_in(network->limits[0], 1), 3);
  EXPECT_EQ(chunks_in(network->limits[0], 5), 15);
  EXPECT_EQ(rounds_for(network->limits[0], 4), 2);
}

TEST(StepNetwork, ParallelLinksAreOneEdge) {
  cluster::Topology topology = ring(3);
  topology.add_link(0, 1, 2e9, 1e-6);
  const auto network = step_network(topology);
  ASSERT_TRUE(network.ok());
  EXPECT_EQ(network->edges.size(), 6u);
  EXPECT_EQ(network->limits[0].capacity, 3);
}

TEST(StepNetwork, ASwitchTakesOneStepAndItsLinksLimitAllPaths) {
  const auto network = step_network(star(4));
  ASSERT_TRUE(network.ok());
  EXPECT_EQ(network->edges.size(), 12u);
  EXPECT_EQ(network->limits.size(), 8u);
  for (const StepLimit& limit : network->limits) EXPECT_EQ(limit.edges.size(), 3u);
}

TEST(StepNetwork, RejectsADisconnectedNetwork) {
  cluster::Topology topology = devices(3);
  topology.add_cable(0, 1, 1e9, 1e-6);
  topology.add_link(1, 2, 1e9, 1e-6);  // one-way: nothing leads back
  const auto network = step_network(topology);
  ASSERT_FALSE(network.ok());
  EXPECT_EQ(network.error().message,
            "the topology is not connected: there is no path from device 2 to device 0");
}

TEST(StepNetwork, ReversingTwiceIsTheIdentity) {
  cluster::Topology topology = ring(5);
  topology.add_link(0, 2, 2e9, 1e-6);
  const auto network = step_network(topology);
  ASSERT_TRUE(network.ok());
  const StepNetwork back = reversed(*network), again = reversed(back);
  EXPECT_EQ(again.edges, network->edges);
  EXPECT_EQ(again.limits, network->limits);
  EXPECT_EQ(step_distances(back)[2][0], step_distances(*network)[0][2]);
}

// The properties of a group: closed, and made of permutations that preserve the network.
void expect_group(const StepNetwork& network, const StepGroup& group) {
  const std::set<StepSymmetry> members(group.begin(), group.end());
  const std::set<StepLimit> limits(network.limits.begin(), network.limits.end());
  for (const StepSymmetry& a : group) {
    for (std::size_t i = 0; i < network.edges.size(); ++i) {
      const StepEdge& to = network.edges[static_cast<std::size_t>(a.edge[i])];
      EXPECT_EQ(to.from, a.device[static_cast<std::size_t>(network.edges[i].from)]);
      EXPECT_EQ(to.to, a.device[static_cast<std::size_t>(network.edges[i].to)]);
    }
    for (StepLimit limit : network.limits) {
      for (std::int32_t& edge : limit.edges) edge = a.edge[static_cast<std::size_t>(edge)];
      std::ranges::sort(limit.edges);
      EXPECT_TRUE(limits.contains(limit));
    }
    for (const StepSymmetry& b : group) {
      StepSymmetry both = a;
      for (std::int32_t& device : both.device) device = b.device[static_cast<std::size_t>(device)];
      for (std::int32_t& edge : both.edge) edge = b.edge[static_cast<std::size_t>(edge)];
      EXPECT_TRUE(members.contains(both));
    }
  }
}

TEST(StepSymmetry, GroupsAreGroups) {
  for (const cluster::Topology& topology : {ring(6), ring(5), star(4), star(6)}) {
    const auto network = step_network(topology);
    ASSERT_TRUE(network.ok());
    const auto groups = step_groups(*network, -1);
    EXPECT_EQ(groups.front().size(), static_cast<std::size_t>(network->devices));
    EXPECT_EQ(groups.back().size(), 1u);
    for (const StepGroup& group : groups) expect_group(*network, group);
  }
}

TEST(StepSymmetry, AnIrregularNetworkHasNone) {
  cluster::Topology topology = ring(4);
  topology.links[0].bytes_per_second = 2e9;
  const auto network = step_network(topology);
  ASSERT_TRUE(network.ok());
  EXPECT_EQ(step_groups(*network, -1).size(), 1u);
}

TEST(StepSymmetry, ARootIsFixed) {
  const auto network = step_network(ring(5));
  ASSERT_TRUE(network.ok());
  const auto groups = step_groups(*network, 2);
  ASSERT_EQ(groups.front().size(), 2u);
  EXPECT_EQ(groups.front()[1].device, (std::vector<std::int32_t>{4, 3, 2, 1, 0}));
}

}  // namespace
}  // namespace weft::synthesis
