// Collectives of groups that take several devices of each node.
#include <gtest/gtest.h>

#include "weft/predict/cost/exchange_seconds.h"
#include "weft/predict/cost/mesh_links.h"

namespace weft::cost {
namespace {

using Kind = program::Exchange::Kind;

// Two nodes of eight, with a port of 50 GB/s per device and 450 GB/s within a node.
MeshLink sixteen(std::int32_t per_node) {
  return {.link = "ib",
          .ranks = 16,
          .across_nodes = true,
          .bytes_per_second = 50e9,
          .per_node = per_node,
          .within_bytes_per_second = 450e9};
}

TEST(SeveralDevicesPerNode, SendThroughPortsOnlyWhatLeavesTheNode) {
  constexpr double kBytes = 1e9;
  const double far = exchange_seconds(Kind::all_to_all, sixteen(1), kBytes).transfer_seconds,
               near = exchange_seconds(Kind::all_to_all, sixteen(8), kBytes).transfer_seconds;
  EXPECT_DOUBLE_EQ(near / far, 8.0 / 15);
  // If nearly all of the group is in one node, the traffic within it takes longer.
  MeshLink slow = sixteen(15);
  slow.within_bytes_per_second = 50e9;
  EXPECT_GT(exchange_seconds(Kind::all_to_all, slow, kBytes).transfer_seconds, near);
}

TEST(SeveralDevicesPerNode, RingsUseAllPortsOfANode) {
  constexpr double kBytes = 1e9;
  for (const Kind kind : {Kind::all_reduce, Kind::reduce_scatter, Kind::all_gather}) {
    const double one = exchange_seconds(kind, sixteen(1), kBytes).transfer_seconds,
                 four = exchange_seconds(kind, sixteen(4), kBytes).transfer_seconds,
                 eight = exchange_seconds(kind, sixteen(8), kBytes).transfer_seconds;
    EXPECT_DOUBLE_EQ(one / four, 4);
    EXPECT_DOUBLE_EQ(one / eight, 8);
    MeshLink slow = sixteen(8);
    slow.within_bytes_per_second = 100e9;
    EXPECT_DOUBLE_EQ(one / exchange_seconds(kind, slow, kBytes).transfer_seconds, 2);
  }
}

TEST(SeveralDevicesPerNode, AreConsecutiveAlongTheAxis) {
  cluster::Cluster cluster;
  cluster.name = "joined";
  cluster.axes = {
      {.name = "node", .size = 16, .link = {.name = "ib", .bytes_per_second = 50e9}, .per_node = 4},
      {.name = "gpu", .size = 2, .link = {.name = "nvlink", .bytes_per_second = 450e9}}};
  const auto links = mesh_links(cluster, {{{"node_a", 2}, {"node_b", 8}, {"gpu", 2}}});
  ASSERT_TRUE(links.ok()) << links.error().message;
  EXPECT_EQ(links->at(0).per_node, 1);  // each second of them, eight apart
  EXPECT_EQ(links->at(1).per_node, 4);
  EXPECT_EQ(links->at(1).within_bytes_per_second, 450e9);
  EXPECT_EQ(links->at(2).per_node, 1);
  const auto halves = mesh_links(cluster, {{{"node_a", 8}, {"node_b", 2}, {"gpu", 2}}});
  ASSERT_TRUE(halves.ok());
  EXPECT_EQ(halves->at(0).per_node, 2);
  EXPECT_EQ(halves->at(1).per_node, 2);
}

}  // namespace
}  // namespace weft::cost
