// The configurations that a search estimates first.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "weft/translate/recipe/improve.h"
#include "weft/translate/recipe/known_families.h"

namespace weft::recipe {
namespace {

using Layers = std::vector<std::int64_t>;

FamilySpace space_of(std::int64_t devices, std::int64_t layers, std::int64_t batch) {
  FamilySpace space;
  space.like.devices = devices;
  space.like.global_batch = batch;
  space.like.sequence = 2048;
  space.per_node = 8;
  space.layers = layers;
  return space;
}

bool has(const std::vector<RecomputeLadder>& ladders, auto&& matches) {
  return std::ranges::any_of(ladders, [&](const RecomputeLadder& ladder) {
    return std::ranges::any_of(ladder, [&](const Recipe& recipe) { return matches(recipe); });
  });
}

TEST(LauncherLayers, CountEmbeddingAndLoss) {
  EXPECT_EQ(launcher_layers(80, 16), Layers());
  // Llama 3 405B: 126 layers on 16 stages.
  Layers llama(16, 8);
  llama.front() = llama.back() = 7;
  EXPECT_EQ(launcher_layers(126, 16), llama);
  EXPECT_EQ(launcher_layers(61, 4), (Layers{16, 16, 16, 13}));
  EXPECT_EQ(launcher_layers(4, 8), std::nullopt);
  EXPECT_EQ(launcher_layers(9, 8), std::nullopt);  // the last stage would have less than no layer
}

TEST(LauncherLayers, AddUp) {
  for (std::int64_t layers = 1; layers <= 130; ++layers)
    for (std::int64_t runs = 1; runs <= layers; ++runs)
      if (const auto made = launcher_layers(layers, runs); made && !made->empty()) {
        EXPECT_EQ(static_cast<std::int64_t>(made->size()), runs);
        EXPECT_EQ(std::accumulate(made->begin(), made->end(), std::int64_t{0}), layers);
        EXPECT_GE(*std::ranges::min_element(*made), 1) << layers << " on " << runs;
      }
}

TEST(KnownFamilies, IncludePublishedConfigurations) {
  // 175B on 1,024 devices with full recomputation (Narayanan et al., 2021).
  EXPECT_TRUE(has(known_families(space_of(1024, 96, 1536)), [](const Recipe& one) {
    return one.tensor == 8 && one.pipeline == 16 && one.virtual_stages == 1 && one.micro_batch == 1 &&
           one.recompute == Recompute::full;
  }));
  // 175B on 64 devices, three chunks per stage, selective recomputation (Korthikanti et al., 2022).
  EXPECT_TRUE(has(known_families(space_of(64, 96, 64)), [](const Recipe& one) {
    return one.tensor == 8 && one.pipeline == 8 && one.virtual_stages == 3 && one.micro_batch == 1 &&
           one.recompute == Recompute::selective && one.sequence_parallel;
  }));
  // Llama 3 405B: uneven stages.
  EXPECT_TRUE(has(known_families(space_of(2048, 126, 2048)), [](const Recipe& one) {
    return one.tensor == 8 && one.pipeline == 16 && one.stage_layers.size() == 16 &&
           one.stage_layers.front() == 7;
  }));
  // Hybrid sharding: parameters sharded within each node of eight.
  EXPECT_TRUE(has(known_families(space_of(64, 32, 512)), [](const Recipe& one) {
    return one.tensor == 1 && one.pipeline == 1 && one.zero == 3 && one.copies == 8;
  }));
}

TEST(KnownFamilies, UseAllDevicesAndStayWithinNodes) {
  FamilySpace space = space_of(256, 32, 512);
  space.experts = 8;
  const std::vector<RecomputeLadder> ladders = known_families(space);
  EXPECT_GT(ladders.size(), 100u);
  for (const RecomputeLadder& ladder : ladders)
    for (std::size_t i = 0; i < ladder.size(); ++i) {
      const Recipe& one = ladder[i];
      EXPECT_TRUE(check(one, 256).ok()) << describe(one);
      EXPECT_LE(one.tensor, 8);
      EXPECT_EQ(one.tensor * one.pipeline * one.context * one.data, 256);
      if (i > 0) EXPECT_LT(ladder[i - 1].recompute, one.recompute);
    }
  EXPECT_TRUE(has(ladders, [](const Recipe& one) { return one.expert == 8; }));
}

// Families that just fit come first: under a short time limit only these are tried.
TEST(KnownFamilies, BeginWithDegreesThatFit) {
  FamilySpace space = space_of(1024, 96, 1536);
  space.parameters = 175e9;
  space.memory_bytes = 80e9;
  const Recipe first = known_families(space).front().front();
  const double states = 6 * space.parameters / static_cast<double>(first.tensor * first.pipeline);
  EXPECT_LT(states, space.memory_bytes);
  EXPECT_GT(states, space.memory_bytes / 4);
}

TEST(Complexity, GrowsWithEachKindOfParallelism) {
  Recipe plain;
  EXPECT_EQ(complexity(plain), 0);
  Recipe staged = plain;
  staged.pipeline = 4;
  Recipe interleaved = staged;
  interleaved.virtual_stages = 2;
  Recipe uneven = staged;
  uneven.stage_layers = {3, 4, 4, 3};
  EXPECT_LT(complexity(plain), complexity(staged));
  EXPECT_LT(complexity(staged), complexity(interleaved));
  EXPECT_LT(complexity(staged), complexity(uneven));
}

}  // namespace
}  // namespace weft::recipe
