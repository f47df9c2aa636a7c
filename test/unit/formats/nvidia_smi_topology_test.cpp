// Tables of `nvidia-smi topo -m`, valid and invalid.
#include "weft/formats/nvidia_smi_topology.h"

#include <gtest/gtest.h>

#include "weft/collectives/synthesis/forest.h"

namespace weft::formats {
namespace {

constexpr std::string_view kPairs =
    R"(        GPU0    GPU1    GPU2    GPU3    mlx5_0  CPU Affinity    NUMA Affinity
GPU0     X      NV2     PHB     SYS     PIX     0-31            0
GPU1    NV2      X      SYS     PHB     SYS     32-63           1
GPU2    PHB     SYS      X      NV2     SYS     0-31            0
GPU3    SYS     PHB     NV2      X      SYS     32-63           1
mlx5_0  PIX     SYS     SYS     SYS      X

Legend:

  X    = Self
  SYS  = Connection traversing PCIe as well as the SMP interconnect between NUMA nodes
)";

std::string full(std::int32_t devices, std::string_view cell) {
  std::string text = "\t";
  for (std::int32_t d = 0; d < devices; ++d) text += "GPU" + std::to_string(d) + "\t";
  text += "CPU Affinity\n";
  for (std::int32_t d = 0; d < devices; ++d) {
    text += "GPU" + std::to_string(d);
    for (std::int32_t other = 0; other < devices; ++other)
      text += other == d ? "\t X " : "\t" + std::string(cell);
    text += "\t0-31\n";
  }
  return text;
}

TEST(NvidiaSmiTopology, EqualLinksToAllAreASwitch) {
  const auto topology = read_nvidia_smi_topology(full(8, "NV12"), "topo.txt");
  ASSERT_TRUE(topology.ok()) << topology.error().message;
  EXPECT_EQ(topology->devices, 8);
  EXPECT_EQ(topology->nodes.size(), 9U);
  const auto forest = synthesis::bound_forest(*topology, collective::Kind::all_gather, 0);
  ASSERT_TRUE(forest.ok());
  // Each device receives 7/8 of the result at 12 * 25 GB/s.
  EXPECT_NEAR(forest->optimum / 1e9, 300.0 * 8 / 7, 0.01);
}

TEST(NvidiaSmiTopology, ConnectsPairsOverPcie) {
  const auto topology = read_nvidia_smi_topology(kPairs, "topo.txt");
  ASSERT_TRUE(topology.ok()) << topology.error().message;
  EXPECT_EQ(topology->devices, 4);
  EXPECT_TRUE(synthesis::bound_forest(*topology, collective::Kind::all_gather, 0).ok());
}

TEST(NvidiaSmiTopology, IgnoresColours) {
  const std::string coloured = "\x1b[4m" + full(4, "NV4") + "\x1b[0m";
  EXPECT_TRUE(read_nvidia_smi_topology(coloured, "topo.txt").ok());
}

TEST(NvidiaSmiTopology, NamesTheFileInErrors) {
  const auto message = [](std::string_view text) {
    const auto read = read_nvidia_smi_topology(text, "t");
    return read.ok() ? std::string("fine") : read.error().message;
  };
  EXPECT_EQ(message("hello\n"), "t: expected a line that begins with GPU0, found none");
  EXPECT_EQ(message("GPU0 GPU1\nGPU0 X PIX\nGPU1 SYS X\n"),
            "t: the connection of GPU0 and GPU1 differs by direction");
}

}  // namespace
}  // namespace weft::formats
