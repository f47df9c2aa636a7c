// Ranks that all send to their neighbours at once: each time follows from the links.
#include "weft/predict/sim/collective/neighbours.h"

#include <limits>

#include <gtest/gtest.h>

namespace weft::sim {
namespace {

constexpr double kLatency = 1e-6, kRate = 100e9, kBytes = 1e9;

cluster::Topology wires(cluster::Shape shape, std::int64_t devices) {
  const cluster::Link link{"gpu", kRate, kLatency, shape, {}, 1};
  return cluster::topology_of({"node", {.name = "gpu"}, {{"node", 1, {}}, {"gpu", devices, link}}}).value();
}

// A runtime without overhead.
const RunParameters kFree{};

double transfer(const Neighbours& neighbours, const cluster::Topology& topology) {
  return simulate(neighbours, topology, kBytes, 1, kFree).value().transfer_seconds;
}

TEST(NeighboursTest, EachRankHasItsPortOnASwitch) {
  const cluster::Topology topology = wires(cluster::Shape::switched, 4);
  EXPECT_NEAR(transfer({.ranks = 4}, topology), kBytes / kRate, 1e-9);
  // Half of the bytes to each side, through one port.
  EXPECT_NEAR(transfer({.ranks = 4, .both_ways = true, .closed = false}, topology), kBytes / kRate, 1e-9);
  EXPECT_GT(simulate({.ranks = 4}, topology, 0, 1, kFree)->latency_seconds, 0);
}

TEST(NeighboursTest, InterleavedGroupsShareLinks) {
  const cluster::Topology ring = wires(cluster::Shape::ring, 8);
  // Half the rate to each neighbour. With stride one on a ring, every transfer has its own link,
  // ...
  EXPECT_NEAR(transfer({.ranks = 8}, ring), kBytes / (kRate / 2), 1e-9);
  // ... with stride two it shares each link with the group in between.
  EXPECT_NEAR(transfer({.ranks = 4, .stride = 2}, ring), 2 * kBytes / (kRate / 2), 1e-9);
}

TEST(NeighboursTest, PartOfARingIsALineWithAReturnMessage) {
  const cluster::Topology ring = wires(cluster::Shape::ring, 8);
  // In each half of the ring, three messages go up and one returns over three links; no link has
  // two.
  EXPECT_NEAR(transfer({.ranks = 4}, ring), kBytes / (kRate / 2), 1e-9);
  EXPECT_NEAR(transfer({.ranks = 4, .both_ways = true, .closed = false}, ring), kBytes / 2 / (kRate / 2),
              1e-9);
}

TEST(NeighboursTest, CopiesMayBeSlowerThanLinks) {
  const cluster::Topology topology = wires(cluster::Shape::switched, 4);
  RunParameters slow;
  slow.copy_bytes_per_second = 10e9;
  slow.launch_seconds = 3e-6;
  EXPECT_NEAR(simulate({.ranks = 4}, topology, kBytes, 2, slow)->transfer_seconds, kBytes / 20e9, 1e-9);
  EXPECT_NEAR(simulate({.ranks = 4}, topology, kBytes, 2, slow)->latency_seconds -
                  simulate({.ranks = 4}, topology, kBytes, 2, kFree)->latency_seconds,
              3e-6, 1e-12);
}

TEST(NeighboursTest, NamesDevicesWithoutARoute) {
  cluster::Topology apart;
  apart.name = "apart";
  apart.devices = 2;
  apart.nodes.resize(2);
  const auto refused = simulate({.ranks = 2}, apart, kBytes, 1, kFree);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("has no path between ranks"), std::string::npos);
}

}  // namespace
}  // namespace weft::sim
