// ON JOB: the cluster that plans use for ranks on several hosts.
#include "weft/planner/target/job_cluster.h"

#include <gtest/gtest.h>

#include "weft/predict/cost/mesh_links.h"
#include "weft/predict/cost/step_costs.h"

namespace weft::planner {
namespace {

transport::Hosts placed(std::vector<std::int32_t> of) {
  transport::Hosts hosts;
  hosts.of = std::move(of);
  for (const std::int32_t host : hosts.of) hosts.count = std::max(hosts.count, host + 1);
  return hosts;
}

cluster::Cluster cluster_on(std::vector<std::int32_t> of) {
  cluster::Device core;
  core.name = "cpu_core";
  return cluster_of(placed(std::move(of)), {.latency_seconds = 1e-4, .bytes_per_second = 1e8}, core);
}

std::string shape_of_axes(const cluster::Cluster& cluster) {
  std::string text;
  for (const cluster::Axis& axis : cluster.axes)
    text += axis.name + "=" + std::to_string(axis.size) +
            (axis.link.name.empty() ? "" : " " + axis.link.name) + ";";
  return text;
}

TEST(JobCluster, IsIndependentOfTheOrderOfRanks) {
  EXPECT_EQ(shape_of_axes(cluster_on({0, 0, 1, 1})), "host=2 network;rank=2;");
  EXPECT_EQ(shape_of_axes(cluster_on({0, 1, 0, 1})), "host=2 network;rank=2;");
  EXPECT_EQ(placed({0, 1, 0, 1}).by_host(), (std::vector<std::int32_t>{0, 2, 1, 3}));
  EXPECT_EQ(placed({0, 0, 1, 1}).by_host(), (std::vector<std::int32_t>{0, 1, 2, 3}));
}

TEST(JobCluster, OfOneHostIsLocal) {
  EXPECT_EQ(shape_of_axes(cluster_on({0, 0, 0})), "rank=3;");
  EXPECT_TRUE(cost::is_local(cluster_on({0, 0, 0})));
}

// No mesh fits hosts of different sizes: no link is assumed to be faster than the network.
TEST(JobCluster, OfUnevenHostsIsOneAxisOfTheNetwork) {
  EXPECT_EQ(shape_of_axes(cluster_on({0, 0, 0, 1})), "rank=4 network;");
  EXPECT_TRUE(cost::is_local(cluster_on({0, 0, 0, 1})));
}

// The same all-reduce: through memory within a host, and by network figures between hosts, where an
// all-reduce between two sends the data once in each direction at 0.9 of the rate.
TEST(JobCluster, EstimatesHostsByTheNetwork) {
  const cluster::Cluster cluster = cluster_on({0, 1, 0, 1});
  const plan::Mesh mesh{{{"host", 2}, {"rank", 2}}};
  const auto costs = cost::step_costs(cluster, mesh, {.processors = 4});
  ASSERT_TRUE(costs.ok()) << costs.error().message;
  program::Exchange exchange;
  exchange.kind = program::Exchange::Kind::all_reduce;
  constexpr std::int64_t kBytes = 9'000'000;
  const cost::ExchangeCost across = costs->exchange(exchange, 0, kBytes),
                           within = costs->exchange(exchange, 1, kBytes);
  EXPECT_NEAR(across.transfer_seconds, 9e6 / (0.9 * 1e8), 1e-3);
  EXPECT_LT(within.seconds() * 5, across.seconds());
  EXPECT_TRUE(across.algorithm.empty()) << "between hosts the communicator chooses";
}

}  // namespace
}  // namespace weft::planner
