// All-to-all by a concurrent flow: its bound against ones that can be counted by hand, and its schedules.
#include "weft/synthesis/all_to_all.h"

#include <gtest/gtest.h>

#include <utility>

#include "weft/collective/check.h"
#include "weft/synthesis/index.h"
#include "weft/synthesis/path_program.h"

namespace weft::synthesis {
namespace {

cluster::Topology ring(std::int32_t devices) {
  cluster::Topology topology;
  for (std::int32_t i = 0; i < devices; ++i) topology.add_node(cluster::NodeKind::device, "gpu");
  topology.devices = devices;
  for (std::int32_t i = 0; i < devices; ++i) topology.add_cable(i, (i + 1) % devices, 1e9, 1e-6);
  return topology;
}

// A ring of n has 2n links of 1 GB/s; a pair is n/4 links apart on average of n^2/(4(n-1)) over n - 1 others.
// For 8: distances 1 1 2 2 3 3 4 add up to 16, so 16 links carry 8 * 16 = 128 rates: 1/8 GB/s a pair.
TEST(AllToAll, TheBoundOfARingIsWhatItsLinksCarry) {
  const auto found = bound_all_to_all(ring(8));
  ASSERT_TRUE(found.ok());
  EXPECT_GE(found->bound, 1e9 * (1 - 1e-9));
  EXPECT_LE(found->bound, 1.011e9);
  EXPECT_LE(found->flow, 1e9 * (1 + 1e-9));
  EXPECT_GE(found->flow, 0.99e9);
}

// Two boxes of two, one cable of 1 GB/s between: each way it carries 4 pairs, so 1/4 GB/s a pair, 1 in all.
TEST(AllToAll, ANarrowCableBoundsIt) {
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

TEST(AllToAll, SharesOfAPairAddUpAndPathsLead) {
  const auto network = step_network(ring(5));
  ASSERT_TRUE(network.ok());
  const ConcurrentFlow flow = find_concurrent_flow(flow_network(*network), 0.01);
  std::vector<double> sums(25, 0);
  for (const FlowPath& path : flow.paths) {
    sums[at(path.from * 5 + path.to)] += path.share;
    std::int32_t here = path.from;
    for (const std::int32_t arc : path.arcs) {
      EXPECT_EQ(network->edges[at(arc)].from, here);
      here = network->edges[at(arc)].to;
    }
    EXPECT_EQ(here, path.to);
  }
  for (std::int32_t from = 0; from < 5; ++from)
    for (std::int32_t to = 0; to < 5; ++to) EXPECT_NEAR(sums[at(from * 5 + to)], from == to ? 0 : 1, 1e-9);
}

TEST(AllToAll, PathsBecomeProgramsThatAreRight) {
  for (const std::int32_t devices : {2, 3, 6})
    for (const auto& [cut, pieces] : {std::pair(1, 1), std::pair(2, 3), std::pair(3, 2)}) {
      const auto network = step_network(ring(devices));
      ASSERT_TRUE(network.ok());
      const ConcurrentFlow flow = find_concurrent_flow(flow_network(*network), 0.01);
      PathProgram request;
      request.cut = cut;
      request.pieces = pieces;
      request.pace.rate = flow.rate / cut;
      request.pace.connection_rate = 3e8;
      const auto program = path_program(*network, flow, request);
      ASSERT_TRUE(program.ok()) << program.error().message;
      const collective::Report report = collective::check(*program, {.slots = 2});
      EXPECT_FALSE(report.finding) << devices << " " << cut << " " << pieces << ": " << print(*report.finding);
    }
}

TEST(AllToAll, TooManyChunksAreRefused) {
  const auto network = step_network(ring(6));
  const ConcurrentFlow flow = find_concurrent_flow(flow_network(*network), 0.01);
  PathProgram request;
  request.cut = 8;
  request.pieces = 1 << 20;
  const auto program = path_program(*network, flow, request);
  ASSERT_FALSE(program.ok());
  EXPECT_TRUE(program.error().message.starts_with("the program would be too long")) << program.error().message;
}

// However many devices there are, time that is over is over.
TEST(AllToAll, TimeThatIsOverEndsIt) {
  const auto found = bound_all_to_all(ring(2000), Deadline::after(0));
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().message, "time ran out before an all_to_all was bounded");
}

}  // namespace
}  // namespace weft::synthesis
