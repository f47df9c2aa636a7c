// All-to-all by a concurrent flow: its bound compared with values computed by hand, and its
// schedules.
#include "weft/collectives/synthesis/all_to_all.h"

#include <gtest/gtest.h>

#include <vector>

#include "weft/base/random.h"
#include "weft/collectives/check/check.h"
#include "weft/collectives/synthesis/index.h"
#include "weft/collectives/synthesis/path_program.h"

namespace weft::synthesis {
namespace {

cluster::Topology ring(std::int32_t devices) {
  cluster::Topology topology;
  for (std::int32_t i = 0; i < devices; ++i) topology.add_node(cluster::NodeKind::device, "gpu");
  topology.devices = devices;
  for (std::int32_t i = 0; i < devices; ++i) topology.add_cable(i, (i + 1) % devices, 1e9, 1e-6);
  return topology;
}

// A ring of n has 2n links of 1 GB/s; a pair is n/4 links apart on average of n^2/(4(n-1)) over n -
// 1 others. For 8: distances 1 1 2 2 3 3 4 add up to 16, so 16 links carry 8 * 16 = 128 rates: 1/8
// GB/s per pair.
TEST(AllToAll, BoundsARingByItsLinks) {
  const auto found = bound_all_to_all(ring(8));
  ASSERT_TRUE(found.ok());
  EXPECT_GE(found->bound, 1e9 * (1 - 1e-9));
  EXPECT_LE(found->bound, 1.011e9);
  EXPECT_LE(found->flow, 1e9 * (1 + 1e-9));
  EXPECT_GE(found->flow, 0.99e9);
}

// Two boxes of two, one link of 1 GB/s between: in each direction it carries 4 pairs, so 1/4 GB/s
// per pair, 1 in all.
TEST(AllToAll, IsBoundedByASlowLink) {
  cluster::Topology topology;
  for (std::int32_t i = 0; i < 4; ++i) topology.add_node(cluster::NodeKind::device, "gpu");
  topology.devices = 4;
  topology.add_cable(0, 1, 10e9, 0);
  topology.add_cable(2, 3, 10e9, 0);
  topology.add_cable(1, 2, 1e9, 0);
  const auto found = bound_all_to_all(topology);
  ASSERT_TRUE(found.ok());
  EXPECT_NEAR(found->bound, 1e9, 0.011e9);
  EXPECT_GE(found->bound, 1e9 * (1 - 1e-9));
}

TEST(AllToAll, SharesOfAPairAddUpAndPathsConnect) {
  for (const std::int32_t devices : {5, 24}) {
    const auto found = route_all_to_all(ring(devices));
    ASSERT_TRUE(found.ok()) << found.error().message;
    std::vector<double> sums(at(devices * devices), 0);
    for (const RoutedPath& path : found->paths) {
      sums[at(path.from * devices + path.to)] += path.share;
      std::int32_t here = path.from;
      for (const TreeEdge& edge : path.edges) {
        EXPECT_EQ(edge.from, here);
        here = edge.to;
      }
      EXPECT_EQ(here, path.to);
    }
    for (std::int32_t from = 0; from < devices; ++from)
      for (std::int32_t to = 0; to < devices; ++to)
        EXPECT_NEAR(sums[at(from * devices + to)], from == to ? 0 : 1, 1e-9);
  }
}

// Bound and flow meet for few devices: links of any rates, some one-way, some through a switch.
TEST(AllToAll, BoundAndFlowMeet) {
  Random random(5);
  for (int trial = 0; trial < 12; ++trial) {
    cluster::Topology topology = ring(static_cast<std::int32_t>(random.between(3, 7)));
    const std::int32_t hub = topology.add_node(cluster::NodeKind::switch_, "hub");
    for (cluster::DirectedLink& link : topology.links)
      link.bytes_per_second = 1e9 * static_cast<double>(random.between(10, 300));
    for (std::int32_t d = 0; d < topology.devices; ++d) {
      topology.add_link(d, hub, 1e9 * static_cast<double>(random.between(10, 300)), 1e-6);
      topology.add_link(hub, d, 1e9 * static_cast<double>(random.between(10, 300)), 1e-6);
    }
    const auto found = route_all_to_all(topology);
    ASSERT_TRUE(found.ok()) << found.error().message;
    EXPECT_LE(found->flow, found->bound * (1 + 1e-9)) << trial;
    EXPECT_GE(found->flow, found->bound * (1 - 1e-3)) << trial;
    std::vector<double> load(topology.links.size(), 0);
    cluster::Routes shortest(topology);
    for (const RoutedPath& path : found->paths)
      for (const TreeEdge& edge : path.edges)
        for (const std::int32_t link :
             edge.route >= 0 ? found->routes[at(edge.route)] : *shortest.route(edge.from, edge.to))
          load[at(link)] += path.share * found->flow / topology.devices;
    for (std::size_t l = 0; l < load.size(); ++l)
      EXPECT_LE(load[l], topology.links[l].bytes_per_second * (1 + 1e-6)) << trial << " link " << l;
  }
}

TEST(AllToAll, PathsBecomeCorrectPrograms) {
  for (const std::int32_t devices : {2, 3, 6})
    for (const std::int32_t chunks : {1, 6, 7}) {
      const auto found = route_all_to_all(ring(devices));
      ASSERT_TRUE(found.ok());
      PathProgram request;
      request.ranks = devices;
      request.chunks = chunks;
      request.pace.connection_rate = 3e8;
      const auto program = path_program(request, found->paths, found->routes);
      ASSERT_TRUE(program.ok()) << program.error().message;
      const collective::Report report = collective::check(*program, {.slots = 2});
      EXPECT_FALSE(report.finding) << devices << " " << chunks << ": " << print(*report.finding);
    }
}

TEST(AllToAll, RejectsTooManyChunks) {
  const auto found = route_all_to_all(ring(6));
  ASSERT_TRUE(found.ok());
  PathProgram request;
  request.ranks = 6;
  request.chunks = 1 << 23;
  const auto program = path_program(request, found->paths, found->routes);
  ASSERT_FALSE(program.ok());
  EXPECT_TRUE(program.error().message.starts_with("the program would be too long"))
      << program.error().message;
}

// For any number of devices, an expired deadline stops the search.
TEST(AllToAll, StopsAtTheDeadline) {
  const auto found = bound_all_to_all(ring(2000), Deadline::after(0));
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().message, "time ran out before an all_to_all was bounded");
}

}  // namespace
}  // namespace weft::synthesis
