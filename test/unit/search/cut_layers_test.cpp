// Stages of whole layers, and what similar plans share.
#include <gtest/gtest.h>

#include "weft/planner/search/pipeline/cut_layers.h"
#include "weft/planner/search/pipeline/stage_cost_cache.h"

namespace weft::search {
namespace {

using Ends = std::vector<std::size_t>;
using Layers = std::vector<std::int64_t>;

// embed | two parts per layer, four layers | norm | head
const std::vector<std::string> kParts = {"", "b.0", "b.0", "b.1", "b.1", "b.2", "b.2", "b.3", "b.3", "", ""};

TEST(CutLayers, KeepsLayersWhole) {
  EXPECT_EQ(count_layers(kParts), 4);
  EXPECT_EQ(cut_layers(kParts, Layers{2, 2}), (Ends{5, 11}));
  EXPECT_EQ(cut_layers(kParts, Layers{1, 2, 1}), (Ends{3, 7, 11}));
  EXPECT_EQ(cut_layers(kParts, Layers{4}), Ends{11});
  // The embedding or the loss may have a stage of its own.
  EXPECT_EQ(cut_layers(kParts, Layers{0, 4}), (Ends{1, 11}));
  EXPECT_EQ(cut_layers(kParts, Layers{4, 0}), (Ends{9, 11}));
}

TEST(CutLayers, RejectsNumbersThatDoNotAddUp) {
  EXPECT_EQ(cut_layers(kParts, Layers{2, 3}), std::nullopt);
  EXPECT_EQ(cut_layers(kParts, Layers{2, 0, 2}), std::nullopt);
  EXPECT_EQ(cut_layers(kParts, Layers{5, -1}), std::nullopt);
  EXPECT_EQ(cut_layers(kParts, Layers{}), std::nullopt);
}

TEST(CutLayers, BalancesWork) {
  // The head is as much work as two layers.
  const std::vector<double> work = {0, 1, 1, 1, 1, 1, 1, 1, 1, 0, 4};
  EXPECT_EQ(cut_between_layers(kParts, work, 2), (Ends{7, 11}));
  EXPECT_EQ(cut_between_layers(kParts, work, 3), (Ends{5, 9, 11}));
  EXPECT_EQ(cut_between_layers(kParts, work, 8), std::nullopt);  // seven: three parts and four layers
}

TEST(OneReplica, LeavesOutRanksThatOnlySliceTheBatch) {
  const auto read = distribute::read_distribution(
      "node_a=4: slice b, shard optimizer; node_b=2: slice b, shard parameters; gpu=8: slice h, f");
  ASSERT_TRUE(read.ok());
  const OneReplica one = one_replica(*read, "b");
  EXPECT_EQ(one.replicas, 4);
  EXPECT_EQ(one.axes, (std::vector<std::size_t>{1, 2}));
  EXPECT_EQ(print(one.within), "node_b=2: slice b, shard parameters; gpu=8: slice h, f");
}

}  // namespace
}  // namespace weft::search
