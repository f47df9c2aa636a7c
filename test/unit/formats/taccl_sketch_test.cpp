// Sketches: TACCL's own files, the links they leave, and minimal contradictions.
#include "weft/formats/taccl_sketch.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "weft/base/file.h"
#include "weft/collectives/synthesis/forest.h"
#include "weft/formats/topology_json.h"

namespace weft::formats {
namespace {

const std::string kWires = WEFT_SOURCE_DIR "/../shared/corpus/ccl-topologies/";

// Two nodes of four devices, each with a switch; every device has a link to the network.
cluster::Topology two_nodes() {
  cluster::Topology topology;
  for (std::int32_t i = 0; i < 8; ++i)
    topology.add_node(cluster::NodeKind::device, "gpu " + std::to_string(i));
  const std::int32_t network = topology.add_node(cluster::NodeKind::switch_, "network");
  for (std::int32_t node = 0; node < 2; ++node) {
    const std::int32_t hub = topology.add_node(cluster::NodeKind::switch_, "hub");
    for (std::int32_t i = 0; i < 4; ++i) {
      topology.add_cable(4 * node + i, hub, 100e9, 1e-6);
      topology.add_cable(4 * node + i, network, 10e9, 1e-6);
    }
  }
  return topology;
}

std::string complaint(const std::string& text) {
  const auto sketch = read_taccl_sketch(text, "s");
  if (!sketch.ok()) return sketch.error().message;
  const auto left = synthesis::apply(*sketch, two_nodes());
  return left.ok() ? "fine" : left.error().message;
}

TEST(TacclSketch, OnlyNamedSendersUseTheNetwork) {
  const auto sketch =
      read_taccl_sketch(R"({"nnodes": 2, "internode_sketch": {"internode_conn": {"1": [0]}}})", "s");
  ASSERT_TRUE(sketch.ok()) << sketch.error().message;
  const auto left = synthesis::apply(*sketch, two_nodes());
  ASSERT_TRUE(left.ok()) << left.error().message;
  // Of eight uplinks, those of devices 1 and 5 remain; of eight downlinks, those of 0 and 4.
  EXPECT_EQ(left->links.size(), two_nodes().links.size() - 12);
  // A node's four blocks leave it at 10 GB/s, so each root gets 2.5 GB/s: eight times that in all.
  const auto bound = synthesis::bound_forest(*left, collective::Kind::all_gather, 0);
  ASSERT_TRUE(bound.ok());
  EXPECT_NEAR(bound->optimum, 20e9, 1);
}

TEST(TacclSketch, ReportsMinimalContradictions) {
  EXPECT_EQ(
      complaint("{\"nnodes\": 2,\n\"internode_sketch\": {\"internode_conn\": {\n\"1\": [0],\n\"9\": [2]}}}"),
      "the sketch cannot be satisfied: a node has devices 0 to 3, found 9\n"
      "  line 4: internode_conn \"9\": [2]");
  EXPECT_EQ(complaint("{\"nnodes\": 2,\n\"internode_sketch\": {\"internode_conn\": {\n\"1\": [0]},\n"
                      "\"gpus_to_sender_rev_map\": {\n\"3\": [2, 3]}}}"),
            "the sketch cannot be satisfied: device 3 relays, but does not send to other nodes\n"
            "  line 3: internode_conn \"1\": [0]\n"
            "  line 5: gpus_to_sender_rev_map \"3\": [2,3]");
  EXPECT_EQ(complaint("{\"nnodes\": 2,\n\"internode_sketch\": {\"internode_conn\": {\n\"1\": [0]}},\n"
                      "\"symmetry_offsets\": [[2, 4]]}"),
            "the sketch cannot be satisfied: shifted by 2, device 3 would have to send as 1 does\n"
            "  line 3: internode_conn \"1\": [0]\n"
            "  line 4: symmetry_offsets [2,4]");
  EXPECT_EQ(
      complaint("{\"nnodes\": 2,\n\"symmetry_offsets\": [[3, 4]]}"),
      "the sketch cannot be satisfied: expected an offset that divides a size that divides 8, found 3 and 4\n"
      "  line 2: symmetry_offsets [3,4]");
  EXPECT_EQ(complaint("{\"nnodes\": 2,\n\"hyperparameters\": {\"input_chunkup\": 0}}"),
            "the sketch cannot be satisfied: a block has 1 to 64 chunks, found 0\n"
            "  line 2: input_chunkup 0");
}

TEST(TacclSketch, RejectsInvalidSketches) {
  EXPECT_EQ(complaint("[]"), "s: expected an object");
  EXPECT_EQ(complaint("{}"), "s: expected nnodes, a whole number of at least 1");
  EXPECT_EQ(complaint(R"({"nnodes": 3})"), "a sketch of 3 nodes does not fit 8 devices");
  EXPECT_EQ(complaint(R"({"nnodes": 2, "internode_sketch": {"internode_conn": {"x": [0]}}})"),
            "s: internode_conn: expected the number of a device, found x");
}

TEST(TacclSketch, SatisfiesPublishedSketches) {
  if (!std::filesystem::exists(kWires)) GTEST_SKIP() << "the corpus is missing";
  struct Pair {
    const char *sketch, *topology;
    std::int32_t devices;
  };
  for (const Pair& pair : {Pair{"taccl_sketch_sk1-ndv2-n2.json", "taccl_topo-ndv2-1MB.json", 16},
                           {"taccl_sketch_sk1-dgx2-n2.json", "taccl_topo-dgx2-1MB.json", 32}}) {
    const auto drawn = read_taccl_sketch(*read_file(kWires + pair.sketch, 1 << 20), pair.sketch);
    ASSERT_TRUE(drawn.ok()) << drawn.error().message;
    TopologyOptions options;
    options.nodes = drawn->nodes;
    const auto topology =
        read_topology_json(*read_file(kWires + pair.topology, 1 << 20), pair.topology, options);
    ASSERT_TRUE(topology.ok()) << topology.error().message;
    const auto left = synthesis::apply(*drawn, *topology);
    ASSERT_TRUE(left.ok()) << left.error().message;
    EXPECT_EQ(left->devices, pair.devices);
    EXPECT_LT(left->links.size(), topology->links.size());
    EXPECT_TRUE(synthesis::bound_forest(*left, collective::Kind::all_gather, 0).ok());
  }
}

}  // namespace
}  // namespace weft::formats
