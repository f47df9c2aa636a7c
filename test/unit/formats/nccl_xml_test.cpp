// Topologies, graphs and tuner rows as NCCL and RCCL read and write them.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "weft/base/file.h"
#include "weft/formats/nccl_graph_xml.h"
#include "weft/formats/nccl_topology_xml.h"
#include "weft/formats/tuner_csv.h"
#include "weft/formats/xml_document.h"

namespace weft::formats {
namespace {

class NcclTopology : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto probe = XmlDocument::parse("<a/>"); !probe.ok()) GTEST_SKIP() << probe.error().message;
  }
};

// Two GPUs under one bridge, connected by a switch; a network card beside them; an empty socket.
constexpr std::string_view kSmall = R"(<system version="1">
  <cpu numaid="0" arch="x86_64" vendor="AuthenticAMD" familyid="143" modelid="49">
    <pci busid="0000:01:00.0" class="0x060400" link_speed="16.0 GT/s PCIe" link_width="16">
      <pci busid="0000:0A:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16">
        <gpu dev="0" sm="80" rank="0" gdr="1">
          <nvlink target="0000:f0:00.0" count="6" tclass="0x068000"/>
          <nvlink target="0000:f1:00.0" count="6" tclass="0x068000"/>
        </gpu>
      </pci>
      <pci busid="0000:0b:00.0" class="0x030200" link_speed="8 GT/s" link_width="8">
        <gpu dev="1" sm="80" rank="1">
          <nvlink target="0000:0a:00.0" count="2" tclass="0x030200"/>
          <c2c count="2" bw="45000"/>
        </gpu>
      </pci>
      <pci busid="0000:0c:00.0" class="0x020000" link_speed="" link_width="0">
        <nic><net name="mlx5_0" dev="0" speed="200000" port="1" latency="1.5"/></nic>
      </pci>
      <pci busid="0000:f0:00.0" class="0x068000" link_speed="16 GT/s" link_width="2"/>
    </pci>
  </cpu>
  <cpu numaid="1" arch="x86_64" vendor="AuthenticAMD"/>
</system>)";

std::vector<std::string> printed(const std::vector<NcclLink>& links) {
  std::vector<std::string> out;
  for (const NcclLink& link : links)
    out.push_back(fmt::format("{} {} -> {} {}: {} {} GB/s {:.1f} us", name(link.from.kind), link.from.index,
                              name(link.to.kind), link.to.index, name(link.kind), link.bandwidth,
                              link.latency * 1e6));
  return out;
}

TEST_F(NcclTopology, ReadsTheTree) {
  const auto system = read_nccl_topology(kSmall);
  ASSERT_TRUE(system.ok()) << system.error().message;
  EXPECT_EQ(system->cpus.size(), 2u);
  ASSERT_EQ(system->pcis.size(), 5u);
  EXPECT_EQ(system->pcis[2].parent, 0);
  ASSERT_EQ(system->gpus.size(), 2u);
  EXPECT_EQ(system->gpus[1].pci, 2);
  EXPECT_EQ(system->gpus[0].peers.size(), 2u);
  EXPECT_TRUE(system->gpus[0].direct_rdma);
  ASSERT_EQ(system->nets.size(), 1u);
  EXPECT_EQ(system->nets[0].name, "mlx5_0");
  EXPECT_EQ(system->nets[0].latency, 1.5);
}

TEST_F(NcclTopology, LinksHaveNcclBandwidths) {
  const std::vector<std::string> expected = {
      "gpu 0 -> pci 0: pci 24 GB/s 1.0 us",    "gpu 0 -> nvswitch 0: nvlink 240 GB/s 0.6 us",
      "gpu 1 -> gpu 0: nvlink 40 GB/s 0.6 us", "gpu 1 -> pci 0: pci 6 GB/s 1.0 us",
      "gpu 1 -> cpu 0: c2c 90 GB/s 0.6 us",    "pci 0 -> gpu 0: pci 24 GB/s 1.0 us",
      "pci 0 -> gpu 1: pci 6 GB/s 1.0 us",     "pci 0 -> cpu 0: pci 24 GB/s 1.0 us",
      "pci 0 -> nic 0: pci 12 GB/s 1.0 us",    "nvswitch 0 -> gpu 0: nvlink 240 GB/s 0.6 us",
      "cpu 0 -> gpu 1: c2c 90 GB/s 0.6 us",    "cpu 0 -> pci 0: pci 24 GB/s 1.0 us",
      "cpu 0 -> cpu 1: system 16 GB/s 1.0 us", "cpu 1 -> cpu 0: system 16 GB/s 1.0 us",
      "nic 0 -> pci 0: pci 12 GB/s 1.0 us",    "nic 0 -> net 0: net 25 GB/s 1.5 us",
      "net 0 -> nic 0: net 25 GB/s 1.5 us"};
  EXPECT_EQ(printed(links(*read_nccl_topology(kSmall))), expected);
}

TEST_F(NcclTopology, RatesMatchTheRuntimes) {
  EXPECT_EQ(pci_bandwidth("2.5 GT/s PCIe", 1), 15.0 / 80);
  EXPECT_EQ(pci_bandwidth("32 GT/s", 16), 48);
  EXPECT_EQ(pci_bandwidth("Unknown", 0), 12);
  EXPECT_EQ(nvlink_bandwidth(90), 20.6);
  EXPECT_EQ(nvlink_bandwidth(86), 12);
  EXPECT_EQ(nvlink_bandwidth(100), 40.1);
  EXPECT_EQ(xgmi_bandwidth("908"), 24);
  EXPECT_EQ(xgmi_bandwidth("910"), 36);
  EXPECT_EQ(xgmi_bandwidth("gfx942"), 48);
  NcclCpu cpu;
  cpu.arch = "arm64";
  EXPECT_EQ(cpu_bandwidth(cpu), 6);
  cpu.arch = "x86_64";
  cpu.vendor = "GenuineIntel";
  cpu.family = 6;
  cpu.model = 85;
  EXPECT_EQ(cpu_bandwidth(cpu), 10);
}

// Two hosts may use the same bus ids: links stay within their host.
TEST_F(NcclTopology, HostsAreSeparate) {
  std::string text = "<system version=\"1\">";
  for (const char* host : {"0x1", "0x2"})
    text += fmt::format(
        R"(<cpu numaid="0" host_hash="{}"><pci busid="0000:0a:00.0" class="0x03"><gpu dev="0" sm="90">)"
        R"(<nvlink target="0000:0b:00.0" count="1" tclass="0x03"/></gpu></pci>)"
        R"(<pci busid="0000:0b:00.0" class="0x03"><gpu dev="1" sm="90"/></pci></cpu>)",
        host);
  const auto system = read_nccl_topology(text + "</system>");
  ASSERT_TRUE(system.ok()) << system.error().message;
  std::vector<std::string> direct = printed(links(*system));
  std::erase_if(direct, [](const std::string& link) { return link.find("nvlink") == link.npos; });
  EXPECT_EQ(direct, (std::vector<std::string>{"gpu 0 -> gpu 1: nvlink 20.6 GB/s 0.6 us",
                                              "gpu 2 -> gpu 3: nvlink 20.6 GB/s 0.6 us"}));
}

TEST_F(NcclTopology, RejectsWrongFiles) {
  const auto error = [](std::string_view text) {
    const auto system = read_nccl_topology(text);
    return system.ok() ? "no error" : system.error().message;
  };
  EXPECT_EQ(error("<graphs/>"), "the root of an NCCL topology is <system>, not <graphs>");
  EXPECT_EQ(error("<system>\n  <cpu/></system>"), "<cpu> at line 2 column 4 has no attribute numaid");
  EXPECT_EQ(error("<system><cpu numaid=\"x\"/></system>"),
            "attribute numaid of <cpu> at line 1 column 14 is not a whole number from -1: x");
  EXPECT_EQ(error("<system><cpu numaid=\"0\"><nic><net speed=\"inf\"/></nic></cpu></system>"),
            "attribute speed of <net> at line 1 column 35 is not a number from -1 to 1000000000: inf");
  EXPECT_EQ(
      error("<system><cpu numaid=\"0\"><pci busid=\"0\" link_width=\"999999999999\"/></cpu></system>"),
      "attribute link_width of <pci> at line 1 column 40 is not a whole number from 0 to 64: 999999999999");
  std::string many = "<system>";
  for (int i = 0; i < 300; ++i) many += "<cpu numaid=\"0\"/>";
  EXPECT_EQ(error(many + "</system>").substr(0, 28), "more than 256 elements at li");
}

TEST_F(NcclTopology, CorpusFilesHaveTheListedElements) {
  const std::string root = WEFT_SOURCE_DIR "/../shared/corpus/nccl-topo/";
  if (!std::filesystem::exists(root)) GTEST_SKIP() << "the corpus is not installed";
  // version, cpus, pcis, gpus, links of gpus, nics, nets
  const std::map<std::string, std::vector<std::size_t>> expected = {
      {"aws_g5.48xl-topo.xml", {1, 2, 9, 0, 0, 0, 0}},
      {"aws_p4d-24xl-topo.xml", {1, 2, 16, 0, 0, 0, 0}},
      {"aws_p4de-24xl-topo.xml", {1, 2, 16, 0, 0, 0, 0}},
      {"rccl_topo_16p1h.xml", {2, 4, 52, 16, 56, 8, 8}},
      {"rccl_topo_4p1h.xml", {2, 1, 10, 4, 8, 1, 1}},
      {"rccl_topo_4p3l_n4.xml", {2, 7, 17, 8, 24, 1, 1}},
      {"rccl_topo_8p1h.xml", {2, 2, 26, 8, 24, 4, 4}},
      {"rccl_topo_8p6l.xml", {2, 2, 17, 8, 48, 1, 1}},
      {"rccl_topo_8p_90a.xml", {2, 1, 10, 8, 24, 1, 1}},
      {"rccl_topo_8p_940.xml", {2, 2, 40, 8, 56, 8, 8}},
      {"rccl_topo_8p_pcie_2nic.xml", {2, 1, 20, 8, 0, 2, 2}},
      {"rccl_topo_8p_rome_4nics.xml", {2, 4, 32, 8, 24, 4, 4}},
      {"rccl_topo_collnet_n4.xml", {2, 4, 32, 8, 24, 4, 4}}};
  for (const auto& [file, counts] : expected) {
    const auto text = read_file(root + file, 1 << 26);
    ASSERT_TRUE(text.ok()) << text.error().message;
    const auto system = read_nccl_topology(*text);
    ASSERT_TRUE(system.ok()) << file << ": " << system.error().message;
    std::size_t peers = 0;
    for (const NcclGpu& gpu : system->gpus) peers += gpu.peers.size();
    EXPECT_EQ((std::vector<std::size_t>{static_cast<std::size_t>(system->version), system->cpus.size(),
                                        system->pcis.size(), system->gpus.size(), peers, system->nics.size(),
                                        system->nets.size()}),
              counts)
        << file;
    // The topology is connected: every vertex is reached from the first CPU.
    const std::vector<NcclLink> all = links(*system);
    std::set<NcclVertex> reached = {{NcclVertex::Kind::cpu, 0}}, vertices = reached;
    for (const NcclLink& link : all) vertices.insert(link.from);
    for (std::size_t before = 0; before != reached.size();) {
      before = reached.size();
      for (const NcclLink& link : all)
        if (reached.contains(link.from)) reached.insert(link.to);
    }
    EXPECT_EQ(reached, vertices) << file;
  }
}

TEST(NcclGraph, WritesRingsAndTrees) {
  NcclGraph ring;
  ring.speed_inside = 20;
  ring.speed_between = 12.5;
  ring.channels = {{{0, 1, 3, 2}, -1, -1}};
  NcclGraph tree = ring;
  tree.pattern = NcclGraph::Pattern::tree;
  tree.channels = {{{10, 11}, 0, 1}};
  const auto text = write_nccl_graphs({ring, tree});
  ASSERT_TRUE(text.ok()) << text.error().message;
  EXPECT_EQ(*text, R"(<graphs version="1">
  <graph id="0" pattern="4" crossnic="0" nchannels="1" speedintra="20" speedinter="12.5" latencyinter="0" typeintra="NVL" typeinter="PIX" samechannels="0">
    <channel>
      <gpu dev="0x0"/>
      <gpu dev="0x1"/>
      <gpu dev="0x3"/>
      <gpu dev="0x2"/>
    </channel>
  </graph>
  <graph id="1" pattern="3" crossnic="1" nchannels="1" speedintra="20" speedinter="12.5" latencyinter="0" typeintra="NVL" typeinter="PIX" samechannels="0">
    <channel>
      <net dev="0x0"/>
      <gpu dev="0xa"/>
      <gpu dev="0xb"/>
      <net dev="0x1"/>
    </channel>
  </graph>
</graphs>
)");
}

TEST(NcclGraph, RejectsChannelsThatAreNotRings) {
  const auto error = [](std::vector<NcclChannel> channels) {
    NcclGraph graph;
    graph.channels = std::move(channels);
    const auto text = write_nccl_graphs({graph});
    return text.ok() ? "no error" : text.error().message;
  };
  EXPECT_EQ(error({}), "a graph has no channel");
  EXPECT_EQ(error({{{}, -1, -1}}), "a channel visits no gpu: channel 0");
  EXPECT_EQ(error({{{0, 1, 0}, -1, -1}}), "a channel visits a gpu twice: channel 0, gpu 0");
  EXPECT_EQ(error({{{0, 1}, -1, -1}, {{0, 2}, -1, -1}}),
            "channels visit different gpus: channel 0 and channel 1");
  EXPECT_EQ(error({{{0, 1}, 0, -1}}), "a channel has one end on the network and one on the host: channel 0");
  EXPECT_EQ(error(std::vector<NcclChannel>(65, {{0, 1}, -1, -1})), "a graph has more than 64 channels: 65");
}

TEST(TunerCsv, WritesAndChecksRows) {
  const TunerRow row{.coll = "allreduce",
                     .max = 65536,
                     .algo = "tree",
                     .proto = "ll",
                     .channels = 2,
                     .nNodes = 1,
                     .nRanks = 8};
  const auto text = write_tuner_csv({row});
  ASSERT_TRUE(text.ok());
  EXPECT_EQ(*text,
            "# coll,min,max,algo,proto,channels,nNodes,nRanks,numPipeOps,regBuff\n"
            "allreduce,0,65536,tree,ll,2,1,8,-1,-1\n");
  TunerRow wrong = row;
  wrong.algo = "rign";
  EXPECT_EQ(write_tuner_csv({wrong}).error().message, "the tuner does not know the algorithm: rign");
  EXPECT_EQ(write_tuner_csv({wrong}).error().hint, "did you mean 'ring'?");
  wrong = row;
  wrong.min = 65537;
  EXPECT_EQ(write_tuner_csv({wrong}).error().message, "a row covers no message size: 65537 to 65536 bytes");
  wrong = row;
  wrong.channels = -2;
  EXPECT_EQ(write_tuner_csv({wrong}).error().message, "a row has a number below -1: -2");
}

}  // namespace
}  // namespace weft::formats
