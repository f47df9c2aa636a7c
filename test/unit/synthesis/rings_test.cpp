// Rings through all devices, and permutations of devices that leave the topology unchanged.
#include "weft/collectives/synthesis/pack_rings.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "weft/collectives/synthesis/automorphism.h"

namespace weft::synthesis {
namespace {

cluster::Topology wired(cluster::Shape shape, std::int32_t devices, std::vector<std::int64_t> sides = {}) {
  cluster::Topology made;
  for (std::int32_t d = 0; d < devices; ++d)
    made.add_node(cluster::NodeKind::device, "gpu " + std::to_string(d));
  cluster::Link link;
  link.shape = shape;
  link.sides = std::move(sides);
  link.bytes_per_second = 12e9;
  cluster::wire_node(made, link, 0, devices);
  return made;
}

// Every device once, over existing links with capacity for all rings together.
void expect_to_fit(const cluster::Topology& topology, const Rings& found) {
  std::map<std::pair<std::int32_t, std::int32_t>, double> room;
  for (const cluster::DirectedLink& link : topology.links)
    room[{link.from, link.to}] += link.bytes_per_second;
  for (const std::vector<std::int32_t>& ring : found.rings) {
    std::vector<std::int32_t> sorted = ring;
    std::ranges::sort(sorted);
    for (std::size_t i = 0; i < sorted.size(); ++i) EXPECT_EQ(sorted[i], static_cast<std::int32_t>(i));
    EXPECT_EQ(ring.size(), static_cast<std::size_t>(topology.devices));
    for (std::size_t i = 0; i < ring.size(); ++i)
      room[{ring[i], ring[(i + 1) % ring.size()]}] -= found.ring_rate;
  }
  for (const auto& [ends, left] : room) EXPECT_GE(left, -1) << ends.first << " to " << ends.second;
}

TEST(PackRings, SaturateTheLinks) {
  const auto both_ways = pack_rings(wired(cluster::Shape::ring, 7), 32);
  ASSERT_TRUE(both_ways.ok()) << both_ways.error().message;
  EXPECT_EQ(both_ways->rings.size(), 2U);
  EXPECT_NEAR(both_ways->rate, 2 * 6e9 * 7 / 6, 1);
  const cluster::Topology dgx1 = wired(cluster::Shape::hybrid_cube_mesh, 8);
  const auto six = pack_rings(dgx1, 32);
  ASSERT_TRUE(six.ok()) << six.error().message;
  expect_to_fit(dgx1, *six);
  // Six would use all links of every device; an unfortunate choice of the first five may leave no
  // sixth.
  EXPECT_GE(six->rate, 5.0 / 6 * 12e9 * 8 / 7 - 1);
  EXPECT_LE(six->rate, 12e9 * 8 / 7 + 1);
}

TEST(PackRings, FitTheirLinks) {
  for (const auto& topology : {wired(cluster::Shape::torus, 12, {3, 4}), wired(cluster::Shape::full, 6),
                               wired(cluster::Shape::mesh, 8, {2, 4})}) {
    const auto found = pack_rings(topology, 32);
    ASSERT_TRUE(found.ok()) << found.error().message;
    expect_to_fit(topology, *found);
  }
}

TEST(PackRings, RejectTopologiesWithoutARing) {
  cluster::Topology chain;  // an odd number of devices in a row
  for (std::int32_t d = 0; d < 3; ++d) chain.add_node(cluster::NodeKind::device, "gpu " + std::to_string(d));
  chain.add_cable(0, 1, 1e9, 0);
  chain.add_cable(1, 2, 1e9, 0);
  const auto found = pack_rings(chain, 32);
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().message, "no ring was found that visits every device once");
}

// Devices 0 and 1 on one switch, 2 and 3 on another.
TEST(Automorphism, SwitchesFollowTheirDevices) {
  ArcGraph graph(4, 6);
  for (std::int32_t d = 0; d < 4; ++d) {
    graph.add(d, 4 + d / 2, 2);
    graph.add(4 + d / 2, d, 2);
  }
  graph.close();
  EXPECT_EQ(graph.extend({2, 3, 0, 1}), (std::vector<std::int32_t>{2, 3, 0, 1, 5, 4}));
  EXPECT_EQ(graph.extend({1, 0, 2, 3}), (std::vector<std::int32_t>{1, 0, 2, 3, 4, 5}));
  EXPECT_TRUE(graph.extend({2, 1, 0, 3}).empty());
}

TEST(Automorphism, RespectsMarks) {
  ArcGraph graph(3, 3);
  graph.add(0, 1, 1);
  graph.add(1, 2, 1);
  graph.add(2, 0, 2);
  graph.close();
  EXPECT_TRUE(graph.extend({1, 2, 0}).empty());
  EXPECT_EQ(graph.extend({0, 1, 2}), (std::vector<std::int32_t>{0, 1, 2}));
}

}  // namespace
}  // namespace weft::synthesis
