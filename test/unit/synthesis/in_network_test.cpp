// All-reduce through switches that reduce and multicast.
#include "weft/collectives/synthesis/in_network.h"

#include <gtest/gtest.h>

#include "weft/collectives/synthesis/forest.h"

namespace weft::synthesis {
namespace {

using cluster::NodeKind;

// Eight devices on a switch, 10 GB/s each.
cluster::Topology hub(bool computes) {
  cluster::Topology topology;
  for (std::int32_t i = 0; i < 8; ++i) topology.add_node(NodeKind::device, "gpu");
  const std::int32_t middle = topology.add_node(NodeKind::switch_, "hub");
  for (std::int32_t i = 0; i < 8; ++i) topology.add_cable(i, middle, 10e9, 1e-6);
  topology.nodes.back().copies = topology.nodes.back().reduces = computes;
  return topology;
}

TEST(InNetwork, AReducingSwitchNearlyDoublesAllReduceBandwidth) {
  // Every device sends its message once and receives the sum once, at the rate of its link.
  const auto found = reduce_in_network(hub(true));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->root, 8);
  EXPECT_NEAR(found->rate, 10e9, 1);
  const auto forest = bound_forest(hub(true), collective::Kind::all_reduce, 0);
  ASSERT_TRUE(forest.ok());
  EXPECT_NEAR(forest->optimum, 10e9, 1);
  EXPECT_EQ(forest->switch_root, 8);
  // Trees of devices: 10 * 8 / (2 * 7).
  EXPECT_NEAR(forest->without_switches, 80e9 / 14, 1);
}

TEST(InNetwork, IgnoresOtherSwitches) {
  EXPECT_FALSE(reduce_in_network(hub(false)));
  cluster::Topology half = hub(true);
  half.nodes.back().reduces = false;
  EXPECT_FALSE(reduce_in_network(half));
  const auto gather = bound_forest(hub(true), collective::Kind::all_gather, 0);
  ASSERT_TRUE(gather.ok());
  EXPECT_EQ(gather->switch_root, -1);
}

// Two leaf switches of four devices under a spine: a leaf's uplink carries one sum, not four
// messages.
TEST(InNetwork, LeavesReduceBeforeTheSpine) {
  cluster::Topology topology;
  for (std::int32_t i = 0; i < 8; ++i) topology.add_node(NodeKind::device, "gpu");
  const std::int32_t spine = topology.add_node(NodeKind::switch_, "spine");
  for (std::int32_t leaf = 0; leaf < 2; ++leaf) {
    const std::int32_t node = topology.add_node(NodeKind::switch_, "leaf");
    topology.add_cable(node, spine, 10e9, 0);
    for (std::int32_t i = 0; i < 4; ++i) topology.add_cable(4 * leaf + i, node, 10e9, 0);
  }
  for (std::size_t n = 8; n < topology.nodes.size(); ++n)
    topology.nodes[n].copies = topology.nodes[n].reduces = true;
  const auto found = reduce_in_network(topology);
  ASSERT_TRUE(found);
  EXPECT_NEAR(found->rate, 10e9, 1);
  // If leaves only forwarded, every device's own copy would have to pass one link.
  topology.nodes[9].reduces = topology.nodes[10].reduces = false;
  EXPECT_FALSE(reduce_in_network(topology));
}

}  // namespace
}  // namespace weft::synthesis
