// The optimum for published topologies, compared with the published figures.
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <string>

#include "weft/base/file.h"
#include "weft/collectives/synthesis/forest.h"
#include "weft/formats/topology_json.h"

namespace weft::formats {
namespace {

struct Published {
  const char* file;
  double optimum;  // GB/s of an all-gather
};

// forestcoll_optimum_allgather_algbw_GBps and forestcoll_on_teccl_topologies of anchors.json.
constexpr auto kPublished = std::to_array<Published>({{"dgx1_25GBps", 171.429},
                                                      {"direct_ring8", 114.286},
                                                      {"direct_torus4x4", 213.333},
                                                      {"direct_mesh4x4", 106.667},
                                                      {"direct_torus8x8", 203.175},
                                                      {"forestcoll_a100x1", 342.857},
                                                      {"forestcoll_a100x2", 346.667},
                                                      {"forestcoll_a100x4", 266.667},
                                                      {"forestcoll_a100x8", 228.571},
                                                      {"forestcoll_mi250x1", 342.857},
                                                      {"forestcoll_mi250x2", 354.133},
                                                      {"teccl_DGX2_2chassis", 129.032},
                                                      {"teccl_NDv2_4chassis", 16.667}});

TEST(SynthesizedTopologies, HaveThePublishedOptimum) {
  const std::filesystem::path folder = WEFT_SOURCE_DIR "/../shared/corpus/ccl-topologies";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no corpus of topologies here";
  for (const Published& published : kPublished) {
    const std::string path = (folder / published.file).string() + ".json";
    const auto text = read_file(path, 1 << 24);
    ASSERT_TRUE(text.ok()) << path;
    const auto topology = read_topology_json(*text, path);
    ASSERT_TRUE(topology.ok()) << path;
    const auto found = synthesis::bound_forest(*topology, collective::Kind::all_gather, 0);
    ASSERT_TRUE(found.ok()) << path;
    EXPECT_NEAR(found->optimum / 1e9, published.optimum, 6e-4) << published.file;
  }
}

}  // namespace
}  // namespace weft::formats
