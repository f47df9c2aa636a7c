// Topologies: the links that a cluster's shapes imply, and the routes through them.
#include "weft/plan/cluster/topology.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>

#include "weft/base/file.h"
#include "weft/formats/system_topology.h"
#include "weft/formats/topology_json.h"
#include "weft/plan/cluster/routes.h"

namespace weft::cluster {
namespace {

Cluster cluster_of(std::int64_t nodes, std::int64_t devices, Shape shape = Shape::unstated,
                   std::vector<std::int64_t> sides = {}) {
  Cluster made;
  made.name = "mine";
  made.device.name = "gpu";
  const Link across{"ib", 50e9, 5e-6, Shape::unstated, {}, 1};
  made.axes = {{"node", nodes, across}, {"gpu", devices, {"gpu", 120e9, 2e-6, shape, std::move(sides), 1}}};
  return made;
}

Topology wires(const Cluster& cluster) {
  auto made = topology_of(cluster);
  EXPECT_TRUE(made.ok()) << (made.ok() ? "" : made.error().message);
  return std::move(made).value();
}

// Total bandwidth out of each device: the link's rate, whatever the shape.
std::vector<double> rates_out(const Topology& topology) {
  std::vector<double> sums(static_cast<std::size_t>(topology.devices), 0);
  for (const DirectedLink& link : topology.links)
    if (link.from < topology.devices) sums[static_cast<std::size_t>(link.from)] += link.bytes_per_second;
  return sums;
}

std::vector<std::int32_t> nodes_on(const Topology& topology, const std::vector<std::int32_t>& route) {
  std::vector<std::int32_t> nodes;
  for (const std::int32_t link : route) nodes.push_back(topology.links[static_cast<std::size_t>(link)].to);
  return nodes;
}

TEST(Topology, ASwitchHasALinkToEveryDevice) {
  const Topology topology = wires(cluster_of(1, 8));
  EXPECT_EQ(topology.devices, 8);
  EXPECT_EQ(topology.nodes.size(), 9u);
  EXPECT_EQ(topology.links.size(), 16u);
  Routes routes(topology);
  const auto route = routes.route(3, 5);
  ASSERT_TRUE(route);
  EXPECT_EQ(nodes_on(topology, *route), (std::vector<std::int32_t>{8, 5}));
  EXPECT_DOUBLE_EQ(latency(topology, *route), 2e-6);
}

TEST(Topology, EveryDirectShapeUsesTheFullRate) {
  const std::vector<std::pair<Cluster, std::size_t>> cases = {
      {cluster_of(1, 8, Shape::ring), 16},
      {cluster_of(1, 2, Shape::ring), 2},
      {cluster_of(1, 8, Shape::full), 56},
      {cluster_of(1, 16, Shape::torus, {4, 4}), 64},
      {cluster_of(1, 8, Shape::torus, {2, 2, 2}), 24},
      {cluster_of(1, 8, Shape::torus, {2, 4}), 24},
      {cluster_of(1, 8, Shape::hybrid_cube_mesh), 32},
      {cluster_of(1, 16, Shape::mi250), 56},
  };
  for (const auto& [cluster, links] : cases) {
    const Topology topology = wires(cluster);
    EXPECT_EQ(topology.links.size(), links) << name(cluster.axes[1].link.shape);
    for (const double rate : rates_out(topology))
      EXPECT_NEAR(rate, 120e9, 1) << name(cluster.axes[1].link.shape);
  }
}

TEST(Topology, AMeshHasNoWrapAroundLinks) {
  const Topology topology = wires(cluster_of(1, 16, Shape::mesh, {4, 4}));
  EXPECT_EQ(topology.links.size(), 48u);
  const std::vector<double> rates = rates_out(topology);
  EXPECT_NEAR(rates[0], 60e9, 1);
  EXPECT_NEAR(rates[5], 120e9, 1);
}

TEST(Topology, EveryDeviceHasANetworkCardAcrossNodes) {
  const Topology topology = wires(cluster_of(4, 8));
  // 32 devices, one switch per node, the spine, and one network card per device.
  EXPECT_EQ(topology.nodes.size(), 32u + 4 + 1 + 32);
  Routes routes(topology);
  const auto far = routes.route(1, 9), near = routes.route(1, 7);
  EXPECT_EQ(far->size(), 4u);
  EXPECT_DOUBLE_EQ(latency(topology, *far), 5e-6);
  EXPECT_EQ(near->size(), 2u);
  std::set<std::int32_t> cards;
  for (std::int32_t d = 0; d < 8; ++d) cards.insert(nodes_on(topology, *routes.route(d, 8 + d))[0]);
  EXPECT_EQ(cards.size(), 8u);
}

TEST(Topology, AnOversubscribedTreeHasLessBandwidthAtTheTop) {
  Cluster cluster = cluster_of(4, 8);
  cluster.axes[0].link.oversubscribed = 2;
  const Topology topology = wires(cluster);
  EXPECT_EQ(topology.nodes.size(), 32u + 4 + 1 + 4 + 32);
  Routes routes(topology);
  const auto route = routes.route(0, 31);
  ASSERT_EQ(route->size(), 6u);
  EXPECT_DOUBLE_EQ(latency(topology, *route), 5e-6);
  EXPECT_DOUBLE_EQ(topology.links[static_cast<std::size_t>((*route)[2])].bytes_per_second, 8 * 50e9 / 2);
}

TEST(Topology, OneDeviceHasNoLinks) {
  const Topology topology = wires(cluster_of(1, 1));
  EXPECT_EQ(topology.nodes.size(), 1u);
  EXPECT_TRUE(topology.links.empty());
}

TEST(Topology, RejectsUnsupportedShapes) {
  EXPECT_FALSE(topology_of(cluster_of(1 << 20, 16)).ok());
  EXPECT_FALSE(topology_of(cluster_of(1, 60000, Shape::full)).ok());
  EXPECT_FALSE(topology_of(cluster_of(1, 12, Shape::torus, {4, 4})).ok());
  EXPECT_FALSE(topology_of(cluster_of(1, 7, Shape::hybrid_cube_mesh)).ok());
  EXPECT_FALSE(topology_of(cluster_of(1, 4, Shape::mesh)).ok());
}

TEST(Topology, CheckFindsErrors) {
  Topology good = wires(cluster_of(1, 4, Shape::ring));
  EXPECT_TRUE(check(good).ok());
  const auto spoilt = [&](auto spoil) {
    Topology bad = good;
    spoil(bad);
    return !check(bad).ok();
  };
  EXPECT_TRUE(spoilt([](Topology& t) { t.links[0].to = 9; }));
  EXPECT_TRUE(spoilt([](Topology& t) { t.links[0].to = t.links[0].from; }));
  EXPECT_TRUE(spoilt([](Topology& t) { t.links[0].bytes_per_second = 0; }));
  EXPECT_TRUE(spoilt([](Topology& t) { t.links[0].latency_seconds = -1; }));
  EXPECT_TRUE(spoilt([](Topology& t) { t.links[0].shares_with = 1; }));
  EXPECT_TRUE(spoilt([](Topology& t) { t.devices = 3; }));
}

TEST(Routes, ATorusRoutesTheShorterWay) {
  const Topology topology = wires(cluster_of(1, 16, Shape::torus, {4, 4}));
  Routes routes(topology);
  EXPECT_EQ(nodes_on(topology, *routes.route(0, 3)), (std::vector<std::int32_t>{3}));
  EXPECT_EQ(nodes_on(topology, *routes.route(0, 12)), (std::vector<std::int32_t>{12}));
  for (std::int32_t to = 1; to < 16; ++to) {
    const int rows = to / 4, columns = to % 4;
    const auto steps = static_cast<std::size_t>(std::min(rows, 4 - rows) + std::min(columns, 4 - columns));
    EXPECT_EQ(routes.route(0, to)->size(), steps) << to;
  }
}

TEST(Routes, SpreadsOverEqualRoutes) {
  // From 0 to 10 of a 4x4 torus: two steps along either dimension, in any order and in either
  // direction.
  const Topology topology = wires(cluster_of(1, 16, Shape::torus, {4, 4}));
  Routes routes(topology);
  std::set<std::vector<std::int32_t>> seen;
  std::map<std::int32_t, int> first;
  for (std::uint64_t which = 0; which < 64; ++which) {
    const auto route = *routes.route(0, 10, which);
    EXPECT_EQ(route.size(), 4u);
    seen.insert(route);
    ++first[route[0]];
  }
  EXPECT_EQ(seen.size(), 24u);
  for (const auto& [link, times] : first) EXPECT_EQ(times, 16) << link;
}

TEST(Routes, AlternatesParallelLinks) {
  Topology topology;
  for (const char* device : {"a", "b"}) topology.add_node(NodeKind::device, device);
  topology.add_cable(0, 1, 1e9, 1e-6);
  topology.add_cable(0, 1, 1e9, 1e-6);
  Routes routes(topology);
  EXPECT_NE(*routes.route(0, 1, 0), *routes.route(0, 1, 1));
  EXPECT_EQ(*routes.route(0, 1, 0), *routes.route(0, 1, 2));
}

TEST(Routes, PrefersLatencyThenHopsThenBandwidth) {
  Topology topology;
  for (const char* device : {"a", "b", "c", "d"}) topology.add_node(NodeKind::device, device);
  topology.add_link(0, 1, 10e9, 1e-6);
  topology.add_link(0, 2, 20e9, 1e-6);
  topology.add_link(1, 3, 10e9, 1e-6);
  topology.add_link(2, 3, 20e9, 1e-6);
  {
    Routes routes(topology);
    for (std::uint64_t which = 0; which < 4; ++which)
      EXPECT_EQ(*routes.route(0, 3, which), (std::vector<std::int32_t>{1, 3}));  // the one with more width
  }
  topology.add_link(0, 3, 1e9, 2e-6);
  {
    Routes routes(topology);
    EXPECT_EQ(*routes.route(0, 3), (std::vector<std::int32_t>{4}));  // equal latency, fewer hops
  }
  topology.links[4].latency_seconds = 3e-6;
  Routes routes(topology);
  EXPECT_EQ(routes.route(0, 3)->size(), 2u);  // higher latency, although fewer hops
  EXPECT_FALSE(routes.route(3, 0));           // one direction only
  EXPECT_TRUE(routes.route(2, 2)->empty());
}

Result<Topology> from_json(std::string_view text, const formats::TopologyOptions& options = {}) {
  return formats::read_topology_json(text, "file", options);
}

TEST(TopologyJson, ReadsLinksOverSwitches) {
  const auto made = from_json(
      R"({"name": "two", "bandwidth_unit": "GB/s", "gpus": 2, "switches": ["hub"],
          "links": [[0, 2, 50], [2, 1, 25.5, 0.35]]})");
  ASSERT_TRUE(made.ok()) << made.error().message;
  EXPECT_EQ(made->devices, 2);
  EXPECT_EQ(made->nodes[2].name, "hub");
  EXPECT_DOUBLE_EQ(made->links[0].bytes_per_second, 50e9);
  EXPECT_DOUBLE_EQ(made->links[0].latency_seconds, 0.35e-6);  // half of the latency between two devices
  EXPECT_DOUBLE_EQ(made->links[1].bytes_per_second, 25.5e9);
  EXPECT_DOUBLE_EQ(made->links[1].latency_seconds, 0.35e-6);
}

TEST(TopologyJson, ChunksPerRoundCountNvlinks) {
  const auto made =
      from_json(R"({"bandwidth_unit": "chunks per round", "gpus": 2, "links": [[0, 1, 2], [1, 0, 1]]})");
  ASSERT_TRUE(made.ok());
  EXPECT_DOUBLE_EQ(made->links[0].bytes_per_second, 50e9);
  EXPECT_DOUBLE_EQ(made->links[1].bytes_per_second, 25e9);
}

TEST(TopologyJson, AProfileDescribesOneNode) {
  const std::string text = R"({"name": "NDv2_1MB", "gpus_per_node": 8, "nics_per_node": 1, "alpha": 0.3,
      "node_betas_list": [23, 46], "remote_alpha": 2.6, "remote_beta": 105})";
  const auto one = from_json(text);
  ASSERT_TRUE(one.ok()) << one.error().message;
  EXPECT_EQ(one->links.size(), 32u);
  const auto two = from_json(text, {.nodes = 2});
  ASSERT_TRUE(two.ok());
  EXPECT_EQ(two->devices, 16);
  EXPECT_EQ(two->nodes.size(), 16u + 1 + 2);
  EXPECT_EQ(two->links.size(), 2u * (32 + 2 + 16));
  Routes routes(*two);
  EXPECT_NEAR(latency(*two, *routes.route(3, 12)), 2.6e-6, 1e-12);
  std::map<double, int> rates;
  for (std::size_t l = 0; l < 32; ++l) ++rates[two->links[l].bytes_per_second];
  EXPECT_EQ(rates[(1 << 20) / 23e-6], 16);
  EXPECT_EQ(rates[(1 << 20) / 46e-6], 16);
}

TEST(TopologyJson, AProfileMayListItsOwnLinks) {
  const auto made = from_json(R"({"gpus_per_node": 2, "alpha": 1, "links": [[0, 1], [0, 0]],
                                  "betas": [[0, 10], [0, 0]]})");
  ASSERT_TRUE(made.ok()) << made.error().message;
  ASSERT_EQ(made->links.size(), 1u);
  EXPECT_EQ(made->links[0].from, 1);
  EXPECT_EQ(made->links[0].to, 0);
}

TEST(TopologyJson, RejectsInvalidTopologies) {
  for (const char* text :
       {"",
        "[]",
        "{}",
        R"({"gpus": 0, "links": []})",
        R"({"gpus": 1e9, "links": []})",
        R"({"gpus": 1000000000, "links": []})",
        R"({"gpus": 2})",
        R"({"gpus": 2, "links": [[0, 2, 1]]})",
        R"({"gpus": 2, "links": [[0, 1, 0]]})",
        R"({"gpus": 2, "links": [[0, 1]]})",
        R"({"gpus": 2, "links": [[0, 0, 1]]})",
        R"({"gpus": 2, "links": [[0, 1, 1, -1]]})",
        R"({"gpus": 2, "links": [[0.5, 1, 1]]})",
        R"({"gpus": 2, "links": [[0, 1, 1e308]]})",
        R"({"gpus": 2, "bandwidth_unit": "furlongs", "links": []})",
        R"({"gpus": 2, "switches": [3], "links": []})",
        R"({"gpus_per_node": 8})",
        R"({"gpus_per_node": 8, "alpha": 1})",
        R"({"gpus_per_node": 4, "alpha": 1, "node_betas_list": [1, 2]})",
        R"({"gpus_per_node": 8, "alpha": 1, "node_betas_list": [0]})",
        R"({"gpus_per_node": 2, "alpha": 1, "links": [[0, 1]], "betas": [[0, 1], [1, 0]]})"})
    EXPECT_FALSE(from_json(text).ok()) << text;
  EXPECT_FALSE(from_json(R"({"gpus": 2, "links": [[0, 1, 1]]})", {.nodes = 2}).ok());
  EXPECT_FALSE(
      from_json(R"({"gpus_per_node": 8, "alpha": 1, "node_betas_list": [1]})", {.nodes = 1'000'000'000})
          .ok());
}

const std::string kCorpus = WEFT_SOURCE_DIR "/../shared/corpus";

std::string corpus_topology(std::string_view name) {
  return kCorpus + "/ccl-topologies/" + std::string(name) + ".json";
}

TEST(TopologyJson, ReadsTheCorpus) {
  if (!std::filesystem::exists(kCorpus + "/ccl-topologies")) GTEST_SKIP() << "the corpus is missing";
  struct Expected {
    const char* file;
    std::int32_t devices, others;
    std::size_t links;
  };
  for (const Expected& expected : std::initializer_list<Expected>{{"dgx1_25GBps", 8, 0, 32},
                                                                  {"direct_mesh4x4", 16, 0, 48},
                                                                  {"direct_ring8", 8, 0, 16},
                                                                  {"direct_torus4x4", 16, 0, 64},
                                                                  {"direct_torus8x8", 64, 0, 256},
                                                                  {"forestcoll_a100x1", 8, 1, 16},
                                                                  {"forestcoll_a100x2", 16, 20, 96},
                                                                  {"forestcoll_a100x4", 32, 38, 192},
                                                                  {"forestcoll_a100x8", 64, 74, 384},
                                                                  {"forestcoll_mi250x1", 16, 0, 56},
                                                                  {"forestcoll_mi250x2", 32, 1, 176},
                                                                  {"sccl_AMD4", 4, 0, 8},
                                                                  {"sccl_AMD8", 8, 0, 56},
                                                                  {"sccl_DGX1", 8, 0, 32},
                                                                  {"sccl_Ring8_Z52_model", 8, 0, 16},
                                                                  {"teccl_DGX2_2chassis", 32, 2, 80},
                                                                  {"teccl_NDv2_4chassis", 32, 1, 136},
                                                                  {"taccl_topo-dgx2-1KB", 16, 1, 32},
                                                                  {"taccl_topo-dgx2-1MB", 16, 1, 32},
                                                                  {"taccl_topo-ndv2-1KB", 8, 0, 32},
                                                                  {"taccl_topo-ndv2-1MB", 8, 0, 32},
                                                                  {"taccl_topo-ndv2-32KB", 8, 0, 32}}) {
    const auto text = read_file(corpus_topology(expected.file), 1 << 20);
    ASSERT_TRUE(text.ok()) << expected.file;
    const auto made = from_json(*text);
    ASSERT_TRUE(made.ok()) << made.error().message;
    EXPECT_EQ(made->devices, expected.devices) << expected.file;
    EXPECT_EQ(made->nodes.size(), static_cast<std::size_t>(expected.devices + expected.others))
        << expected.file;
    EXPECT_EQ(made->links.size(), expected.links) << expected.file;
    Routes routes(*made);
    for (std::int32_t from = 0; from < made->devices; ++from)
      EXPECT_TRUE(routes.route(from, (from + 1) % made->devices)) << expected.file;
  }
}

// Shapes named after machines equal the published topologies of those machines.
TEST(TopologyJson, TheCorpusHasOurShapes) {
  if (!std::filesystem::exists(kCorpus + "/ccl-topologies")) GTEST_SKIP() << "the corpus is missing";
  const auto same = [](const char* file, Cluster cluster, double rate) {
    cluster.axes[1].link.bytes_per_second = rate;
    const auto rates = [](const Topology& topology) {
      std::map<std::pair<std::int32_t, std::int32_t>, std::int64_t> sums;
      for (const DirectedLink& link : topology.links)
        sums[{link.from, link.to}] += std::llround(link.bytes_per_second);
      return sums;
    };
    const auto text = read_file(corpus_topology(file), 1 << 20);
    ASSERT_TRUE(text.ok());
    EXPECT_EQ(rates(wires(cluster)), rates(from_json(*text).value())) << file;
  };
  same("sccl_DGX1", cluster_of(1, 8, Shape::hybrid_cube_mesh), 150e9);
  same("forestcoll_mi250x1", cluster_of(1, 16, Shape::mi250), 350e9);
  same("direct_ring8", cluster_of(1, 8, Shape::ring), 100e9);
  same("direct_torus8x8", cluster_of(1, 64, Shape::torus, {8, 8}), 200e9);
  same("direct_mesh4x4", cluster_of(1, 16, Shape::mesh, {4, 4}), 200e9);
  same("forestcoll_a100x1", cluster_of(1, 8), 300e9);
}

TEST(SystemTopology, ReadsTheCorpus) {
  if (!std::filesystem::exists(kCorpus + "/nccl-topo")) GTEST_SKIP() << "the corpus is missing";
  const std::map<std::string, std::int32_t> devices = {
      {"rccl_topo_16p1h", 16},    {"rccl_topo_4p1h", 4},         {"rccl_topo_4p3l_n4", 8},
      {"rccl_topo_8p1h", 8},      {"rccl_topo_8p6l", 8},         {"rccl_topo_8p_90a", 8},
      {"rccl_topo_8p_940", 8},    {"rccl_topo_8p_pcie_2nic", 8}, {"rccl_topo_8p_rome_4nics", 8},
      {"rccl_topo_collnet_n4", 8}};
  for (const auto& [file, count] : devices) {
    const auto text = read_file(kCorpus + "/nccl-topo/" + file + ".xml", 1 << 24);
    ASSERT_TRUE(text.ok());
    const auto system = formats::read_nccl_topology(*text);
    if (!system.ok() && system.error().fault == Fault::world) GTEST_SKIP() << system.error().message;
    ASSERT_TRUE(system.ok()) << file << system.error().message;
    const auto made = formats::topology_of(*system);
    ASSERT_TRUE(made.ok()) << file << made.error().message;
    EXPECT_EQ(made->devices, count) << file;
    Routes routes(*made);
    for (std::int32_t d = 1; d < made->devices; ++d) EXPECT_TRUE(routes.route(d, 0)) << file;
  }
  const auto bare = read_file(kCorpus + "/nccl-topo/aws_p4d-24xl-topo.xml", 1 << 24);
  EXPECT_FALSE(formats::topology_of(*formats::read_nccl_topology(*bare)).ok());
}

}  // namespace
}  // namespace weft::cluster
