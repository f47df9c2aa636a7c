// Stages of whole layers, and what similar plans share.
#include <gtest/gtest.h>

#include "weft/planner/search/pipeline/cut_layers.h"
#include "weft/planner/search/pipeline/stage_cost_cache.h"

namespace weft::search {
namespace {

using Ends = std::vector<std::size_t>;
using Layers = std::vector<std::int64_t>;

// embed | two parts per layer, four layers | norm | head
const std::vector<std::int32_t> kParts = {0, 1, 1, 2, 2, 3, 3, 4, 4, 0, 0};

TEST(CutLayers, KeepsLayersWhole) {
  EXPECT_EQ(count_layers(kParts), 4);
  EXPECT_EQ(cut_layers(kParts, Layers{2, 2}), (Ends{5, 11}));
  EXPECT_EQ(cut_layers(kParts, Layers{1, 2, 1}), (Ends{3, 7, 11}));
  EXPECT_EQ(cut_layers(kParts, Layers{4}), Ends{11});
  // The embedding or the loss may have a stage of its own.
  EXPECT_EQ(cut_layers(kParts, Layers{0, 4}), (Ends{1, 11}));
  EXPECT_EQ(cut_layers(kParts, Layers{4, 0}), (Ends{9, 11}));
}

// An iteration may have several layers of the model's text, such as attention and a multi-layer perceptron.
TEST(CutLayers, CountsSharesOfLayers) {
  PartCosts costs(11);
  for (std::size_t p = 1; p < 9; ++p) costs[p].layers = 0.5;
  EXPECT_EQ(layers_of_parts(costs), kParts);
  for (std::size_t p = 1; p < 9; ++p) costs[p].layers = 1.0 / 8;
  EXPECT_EQ(count_layers(layers_of_parts(costs)), 1);
  EXPECT_EQ(count_layers(layers_of_parts(PartCosts(3))), 0);
}

TEST(CutLayers, CutsEqualNumbers) {
  EXPECT_EQ(cut_equal_layers(kParts, 2), (Ends{5, 11}));
  EXPECT_EQ(cut_equal_layers(kParts, 4), (Ends{3, 5, 7, 11}));
  EXPECT_EQ(cut_equal_layers(kParts, 1), Ends{11});
  EXPECT_EQ(cut_equal_layers(kParts, 3), std::nullopt);
  EXPECT_EQ(cut_equal_layers(std::vector<std::int32_t>(3), 2), std::nullopt);
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
  for (std::size_t positions = 1; positions <= 7; ++positions) {
    const auto cuts = cut_between_layers(kParts, work, positions);
    ASSERT_TRUE(cuts && cuts->size() == positions);
    for (const std::size_t end : *cuts)
      EXPECT_TRUE(end == kParts.size() || kParts[end] == 0 || kParts[end] != kParts[end - 1]);
  }
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
