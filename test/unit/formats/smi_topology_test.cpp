// The output of `nvidia-smi topo -m`.
#include <gtest/gtest.h>

#include "weft/formats/smi_topology.h"

namespace weft::formats {
namespace {

// Four GPUs on a board with four links between every two; the header is underlined, as in
// terminals.
constexpr std::string_view kFour =
    "\t\x1b[4mGPU0\tGPU1\tGPU2\tGPU3\tmlx5_0\tCPU Affinity\tNUMA Affinity\x1b[0m\n"
    "GPU0\t X \tNV4\tNV4\tNV4\tSYS\t0-31\t0\n"
    "GPU1\tNV4\t X \tNV4\tNV4\tSYS\t0-31\t0\n"
    "GPU2\tNV4\tNV4\t X \tNV4\tPIX\t32-63\t1\n"
    "GPU3\tNV4\tNV4\tNV4\t X \tPIX\t32-63\t1\n"
    "mlx5_0\tSYS\tSYS\tPIX\tPIX\t X \n\nLegend:\n  X = Self\n";

TEST(SmiTopology, ReadsLinksAndCards) {
  ASSERT_TRUE(looks_like_smi_topology(kFour));
  const auto topology = read_smi_topology(kFour);
  ASSERT_TRUE(topology.ok()) << topology.error().message;
  EXPECT_EQ(topology->gpus(), 4);
  EXPECT_EQ(topology->network_cards, 1);
  EXPECT_EQ(topology->nvlinks[0], (std::vector<std::int32_t>{0, 4, 4, 4}));
  // An A100 has twelve links, so all of them go to other GPUs directly. A V100 has six, so the four
  // links must go to a switch.
  EXPECT_EQ(topology->nvlinks_per_gpu(12), 12);
  EXPECT_EQ(topology->nvlinks_per_gpu(6), 4);
}

TEST(SmiTopology, ReadsATableWithoutNvlinks) {
  const auto topology =
      read_smi_topology("      GPU0 GPU1 CPU Affinity\nGPU0   X   PHB  0-7\nGPU1  PHB   X   0-7\n");
  ASSERT_TRUE(topology.ok()) << topology.error().message;
  EXPECT_EQ(topology->nvlinks_per_gpu(18), 0);
}

TEST(SmiTopology, RejectsIncompleteTables) {
  const auto refusal = [](std::string_view text) {
    const auto topology = read_smi_topology(text);
    EXPECT_FALSE(topology.ok()) << text;
    return topology.ok() ? std::string() : topology.error().message;
  };
  EXPECT_EQ(refusal("nothing"), "expected a line that begins with GPU0, found none");
  EXPECT_EQ(refusal("  GPU0 GPU1\nGPU0 X NV1\n"), "expected one line per GPU of 2, found 1");
  EXPECT_EQ(refusal("  GPU0 GPU1\nGPU0 X\n"), "line 2: expected 2 columns for GPU0, found 1");
  EXPECT_EQ(refusal("  GPU0 GPU1\nGPU0 X NV1\nGPU1 NV2 X\n"),
            "links are not symmetric: NV2 from GPU1 to GPU0, NV1 back");
  EXPECT_EQ(refusal("  GPU0 GPU1\nGPU0 X NVL\nGPU1 NV2 X\n"),
            "line 2: expected NV18, PIX or the like between GPU0 and GPU1, found 'NVL'");
}

}  // namespace
}  // namespace weft::formats
