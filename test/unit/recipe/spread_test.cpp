// Recipes placed on the devices of a cluster, and recovered from plans.
#include <gtest/gtest.h>

#include "weft/translate/recipe/improve.h"
#include "weft/translate/recipe/spread.h"

namespace weft::recipe {
namespace {

const distribute::IndexRoles kRoles{{"b"}, {"s"}, {"h", "f", "v"}, {"x"}, {{"g", "h", 8}}};

cluster::Cluster nodes_of_8(std::int64_t nodes) {
  cluster::Cluster cluster;
  cluster.name = "nodes";
  cluster.axes = {{"node", nodes, {}}, {"gpu", 8, {}}};
  return cluster;
}

Recipe recipe_of(std::int64_t tensor, std::int64_t pipeline, std::int64_t micro_batch = 1,
                 std::int64_t global_batch = 512) {
  Recipe recipe;
  recipe.tensor = tensor;
  recipe.pipeline = pipeline;
  recipe.micro_batch = micro_batch;
  recipe.global_batch = global_batch;
  return recipe;
}

std::string spread_text(const Recipe& recipe, std::int64_t nodes = 8) {
  const auto made = spread(recipe, kRoles, nodes_of_8(nodes));
  return made.ok() ? print(made->distribution) : "error: " + made.error().message;
}

TEST(Spread, PlacesDegreesFromTheInnermostAxis) {
  Recipe recipe = recipe_of(8, 2);
  recipe.zero = 1;
  EXPECT_EQ(spread_text(recipe),
            "node_a=2: stage; node_b=4: slice b, shard optimizer; gpu=8: slice h, f, v; micro=128; "
            "schedule one_f_one_b");
  recipe.order = kPipelineInside;
  EXPECT_EQ(spread_text(recipe),
            "node_a=4: slice b, shard optimizer; node_b=2: stage; gpu=8: slice h, f, v; micro=128; "
            "schedule one_f_one_b");
}

TEST(Spread, SplitsADegreeAtNodeBoundaries) {
  Recipe recipe = recipe_of(4, 1, 8);
  recipe.sequence_parallel = true;
  recipe.zero = 3;
  EXPECT_EQ(spread_text(recipe),
            "node=8: slice b, shard parameters; gpu_a=2: slice b, shard parameters; "
            "gpu_b=4: slice h, f, v, s; micro=4");
  recipe.zero = 0;
  EXPECT_EQ(spread_text(recipe), "node=8: slice b; gpu_a=2: slice b; gpu_b=4: slice h, f, v, s; micro=4");
}

// Ranks of a context hold the same parameters, so launchers shard over them too. It comes back as the same recipe.
TEST(Spread, ShardsOverContextRanks) {
  Recipe recipe = recipe_of(1, 1);
  recipe.context = 4;
  recipe.zero = 1;
  const auto made = spread(recipe, kRoles, nodes_of_8(1));
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(print(made->distribution),
            "gpu_a=2: slice b, shard optimizer; gpu_b=4: slice s, shard optimizer; micro=256");
  const GatheredRecipe back = gather(made->distribution, kRoles, recipe);
  EXPECT_TRUE(back.lost.empty());
  EXPECT_EQ(back.recipe.context, 4);
  EXPECT_EQ(back.recipe.zero, 1);
  EXPECT_EQ(back.recipe.copies, 1);
}

// Eight whole nodes, and halves of nodes: transfers use both kinds of links, and the slower one is
// assumed for all.
TEST(Spread, SplitsNodesIntoStages) {
  const auto made = spread(recipe_of(4, 16), kRoles, nodes_of_8(8));
  ASSERT_TRUE(made.ok()) << made.error().message;
  EXPECT_EQ(print(made->distribution),
            "node=16: stage; gpu=4: slice h, f, v; micro=512; schedule one_f_one_b");
  EXPECT_EQ(made->cluster.axes[0].size, 16);
  EXPECT_EQ(made->cluster.axes[1].size, 4);
  ASSERT_EQ(made->notes.size(), 1u);
}

TEST(Spread, PlacesExpertsOnDataOrTensorRanks) {
  Recipe recipe = recipe_of(2, 1, 4);
  recipe.expert = 8;
  EXPECT_EQ(spread_text(recipe), "node_a=4: slice b; node_b=8: slice x, b; gpu=2: slice h, f, v; micro=4");
  recipe.tensor = 8;
  recipe.expert_tensor = 1;
  recipe.micro_batch = 64;
  EXPECT_EQ(spread_text(recipe), "node=8: slice b; gpu=8: slice x, h, f, v");
}

// Launchers exchange tokens among all ranks of the experts at once: those of one node share an axis with other nodes'.
TEST(Spread, JoinsExpertsOfSeveralNodes) {
  Recipe recipe = recipe_of(1, 1);
  recipe.expert = 32;
  recipe.zero = 1;
  const auto made = spread(recipe, kRoles, nodes_of_8(8));
  ASSERT_TRUE(made.ok()) << made.error().message;
  EXPECT_EQ(print(made->distribution),
            "node_a=2: slice b, shard optimizer; node_b=32: slice x, b, shard optimizer; micro=8");
  EXPECT_EQ(made->cluster.axes[0].size, 64);
  EXPECT_EQ(made->cluster.axes[0].per_node, 8);
  EXPECT_EQ(made->cluster.axes[1].size, 1);
  const GatheredRecipe back = gather(made->distribution, kRoles, recipe);
  EXPECT_EQ(back.recipe.expert, 32);
  EXPECT_EQ(back.recipe.data, 64);
}

// Experts that tensor-parallel ranks slice are on the context ranks, then on the data ranks, as Megatron numbers them.
TEST(Spread, PlacesExpertsOnContextRanksFirst) {
  Recipe recipe = recipe_of(4, 1);
  recipe.context = 2;
  recipe.expert = 8;
  recipe.sequence_parallel = true;
  recipe.zero = 1;
  const auto made = spread(recipe, kRoles, nodes_of_8(8), {.slots = {"p"}, .widths = {"d"}});
  ASSERT_TRUE(made.ok()) << made.error().message;
  EXPECT_EQ(print(made->distribution),
            "node_a=2: slice b, shard optimizer; node_b=4: slice x, b, shard optimizer; "
            "gpu_a=2: slice x, p, s, shard optimizer; gpu_b=4: slice h, f, v, s, d; micro=64");
  const GatheredRecipe back = gather(made->distribution, kRoles, recipe);
  EXPECT_TRUE(back.lost.empty());
  EXPECT_TRUE(same_plan(back.recipe,
                        [&] {
                          Recipe same = recipe;
                          same.devices = 64;
                          same.data = 8;
                          return same;
                        }()))
      << describe(back.recipe);
}

TEST(Spread, ShardsWithinReplicas) {
  Recipe recipe = recipe_of(1, 1, 8);
  recipe.zero = 3;
  recipe.copies = 8;
  EXPECT_EQ(spread_text(recipe), "node=8: slice b; gpu=8: slice b, shard parameters");
}

TEST(Spread, SlicesQueryGroupsIfKeyHeadsAreTooFew) {
  EXPECT_EQ(spread_text(recipe_of(16, 1, 128)),
            "node_a=4: slice b; node_b=2: slice h, f, v, g; gpu=8: slice h, f, v, g");
}

TEST(Spread, RejectsUnevenPlacements) {
  cluster::Cluster six = nodes_of_8(2);
  six.axes[1].size = 6;
  const auto made = spread(recipe_of(4, 3, 1, 12), kRoles, six);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().message, "tensor is not divisible by gpu=6: 4");
  Recipe recipe = recipe_of(1, 1, 8);
  recipe.expert = 8;
  distribute::IndexRoles dense = kRoles;
  dense.expert.clear();
  const auto none = spread(recipe, dense, nodes_of_8(8));
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().message, "the model has no index for expert parallelism: degree 8");
}

// Placement and recovery are inverse, for any recipe.
TEST(Spread, IsRecovered) {
  std::int64_t looked_at = 0;
  for (const std::int64_t tensor : {1, 2, 8, 16})
    for (const std::int64_t pipeline : {1, 2, 4, 8})
      for (const std::int64_t context : {1, 2})
        for (const int zero : {0, 1, 2, 3})
          for (const std::string_view order : {kUsualOrder, kPipelineInside}) {
            Recipe recipe = recipe_of(tensor, pipeline);
            recipe.context = context;
            recipe.zero = zero;
            recipe.sequence_parallel = tensor > 1 && zero != 2;
            recipe.virtual_stages = pipeline > 2 ? 2 : 1;
            recipe.devices = 64;
            if (!check(recipe, 64).ok()) continue;
            recipe.data = recipe.data_degree();
            if (pipeline > 1 && recipe.data > 1) recipe.order = order;
            const auto made = spread(recipe, kRoles, nodes_of_8(8));
            ASSERT_TRUE(made.ok()) << describe(recipe) << ": " << made.error().message;
            if (made->cluster.axes[0].size != 8) continue;
            const GatheredRecipe back = gather(made->distribution, kRoles, recipe);
            // Sharding over one rank leaves no trace.
            Recipe expected = recipe;
            if (recipe.data == 1 && recipe.context == 1) expected.zero = 0;
            EXPECT_TRUE(same_plan(back.recipe, expected))
                << describe(expected) << " | " << print(made->distribution) << " | " << describe(back.recipe);
            EXPECT_TRUE(back.lost.empty()) << print(made->distribution);
            ++looked_at;
          }
  EXPECT_GT(looked_at, 100);
}

TEST(Gather, ReportsWhatRecipesCannotExpress) {
  const auto gathered = [](std::string_view text) {
    const auto read = distribute::read_distribution(text);
    EXPECT_TRUE(read.ok()) << text;
    return gather(*read, kRoles, recipe_of(1, 1));
  };
  const GatheredRecipe zero_bubble =
      gathered("node=8: stage; gpu_a=2: slice b; gpu_b=4: slice h, f, v; micro=64; schedule zb_h1");
  EXPECT_EQ(zero_bubble.recipe.pipeline, 8);
  EXPECT_EQ(zero_bubble.recipe.micro_batch, 4);
  ASSERT_EQ(zero_bubble.lost.size(), 1u);
  EXPECT_EQ(zero_bubble.lost[0], "schedule zb_h1: replaced by one_f_one_b");
  // No launcher supports tensor parallelism across nodes with data parallelism within them.
  EXPECT_EQ(gathered("node=8: slice h, f, v; gpu=8: slice b").lost.size(), 1u);
  EXPECT_EQ(gathered("node=8: slice b; gpu=8: slice h, f, v; replicate w on gpu").lost.size(), 1u);
}

TEST(Neighbours, UseTheSameDevices) {
  Recipe recipe = recipe_of(8, 2);
  recipe.devices = 64;
  recipe.data = 4;
  recipe.sequence = 4096;
  recipe.model.layers = 32;
  recipe.model.heads = 32;
  const std::vector<Recipe> found = neighbours(recipe);
  EXPECT_GT(found.size(), 10u);
  for (const Recipe& one : found) {
    EXPECT_TRUE(check(one, 64).ok()) << describe(one);
    EXPECT_EQ(one.tensor * one.pipeline * one.context * one.data, 64);
    EXPECT_FALSE(changes(recipe, one).empty()) << describe(one);
  }
}

TEST(Languages, DifferInWhatTheyExpress) {
  Recipe today = recipe_of(1, 1, 8);
  today.devices = 64;
  Recipe piped = recipe_of(8, 2);
  piped.devices = 64;
  piped.zero = 1;
  EXPECT_TRUE(expressible_in(Language::megatron, piped, today));
  EXPECT_FALSE(expressible_in(Language::deepspeed, piped, today));
  const auto titan = expressible_in(Language::torchtitan, piped, today);
  ASSERT_TRUE(titan);
  EXPECT_TRUE(print(Language::torchtitan, *titan).lost.empty())
      << print(Language::torchtitan, *titan).lost[0];
  piped.zero = 3;
  EXPECT_FALSE(expressible_in(Language::megatron, piped, today));
}

}  // namespace
}  // namespace weft::recipe
