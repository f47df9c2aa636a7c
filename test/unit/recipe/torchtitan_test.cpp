// job.toml as recipes and back.
#include <gtest/gtest.h>

#include "weft/translate/recipe/languages.h"

namespace weft::recipe {
namespace {

constexpr std::string_view kJob = R"(
[job]
description = "a run of our own"

[training]
local_batch_size = 8
global_batch_size = 512
seq_len = 8192
steps = 1000

[parallelism]
data_parallel_replicate_degree = 2
data_parallel_shard_degree = 4
tensor_parallel_degree = 8
pipeline_parallel_degree = 4
pipeline_parallel_schedule = "Interleaved1F1B"
pipeline_parallel_microbatch_size = 2

[activation_checkpoint]
mode = "full"
)";

// Weft may be built without a TOML parser.
bool reads_toml() { return read_torchtitan("").ok(); }

Recipe read_titan(std::string_view toml) {
  const auto recipe = read_torchtitan(toml);
  EXPECT_TRUE(recipe.ok()) << recipe.error().message;
  return recipe.ok() ? *recipe : Recipe();
}

std::string titan_refusal(std::string_view toml) {
  const auto recipe = read_torchtitan(toml);
  EXPECT_FALSE(recipe.ok());
  return recipe.ok() ? "" : recipe.error().message;
}

TEST(Torchtitan, ReadsAJob) {
  if (!reads_toml()) GTEST_SKIP() << "built without toml++";
  const Recipe recipe = read_titan(kJob);
  EXPECT_EQ(recipe.tensor, 8);
  EXPECT_EQ(recipe.pipeline, 4);
  EXPECT_EQ(recipe.virtual_stages, 2);
  EXPECT_EQ(recipe.data_degree(), 8);
  EXPECT_EQ(recipe.copies, 2);
  EXPECT_EQ(recipe.micro_batch, 2);
  EXPECT_EQ(recipe.micro_batches(), 32);
  EXPECT_EQ(recipe.zero, 2);  // a pipeline keeps gathered parameters
  EXPECT_EQ(recipe.recompute, Recompute::full);
}

TEST(Torchtitan, PrintsWhatItReads) {
  if (!reads_toml()) GTEST_SKIP() << "built without toml++";
  const Recipe recipe = read_titan(kJob);
  const Written written = print_torchtitan(recipe);
  EXPECT_TRUE(written.lost.empty());
  const Recipe again = read_titan(written.text);
  EXPECT_TRUE(same_plan(recipe, again)) << written.text;
  EXPECT_NE(written.text.find("steps = 1000"), std::string::npos) << written.text;
  EXPECT_NE(written.text.find("a run of our own"), std::string::npos) << written.text;
}

TEST(Torchtitan, ReadsOlderKeys) {
  if (!reads_toml()) GTEST_SKIP() << "built without toml++";
  const Recipe recipe = read_titan(
      "[training]\nbatch_size = 4\ntensor_parallel_degree = 2\ndata_parallel_shard_degree = -1\n"
      "[experimental]\npipeline_parallel_degree = 1\n");
  EXPECT_EQ(recipe.tensor, 2);
  EXPECT_EQ(recipe.micro_batch, 4);
  EXPECT_EQ(recipe.zero, 3);
  EXPECT_EQ(recipe.data_degree(), 0);
}

TEST(Torchtitan, NamesErrors) {
  if (!reads_toml()) GTEST_SKIP() << "built without toml++";
  EXPECT_EQ(
      titan_refusal("[parallelism]\ntensor_parallel_degree = \"two\"\n"),
      "parallelism.tensor_parallel_degree: expected a whole number of at least 1, found 'two' in line 2");
  EXPECT_EQ(titan_refusal("[parallelism]\ntensor_paralell_degree = 2\n"),
            "unknown key: parallelism.tensor_paralell_degree");
  EXPECT_NE(titan_refusal("[parallelism\n").find("expected TOML, found an error in line 1"),
            std::string::npos);
  EXPECT_EQ(titan_refusal("[activation_checkpoint]\nmode = \"some\"\n"),
            "activation_checkpoint.mode: expected none, selective or full, found 'some'");
}

TEST(Torchtitan, ReportsWhatItHasNoKeyFor) {
  Recipe recipe;
  recipe.zero = 1;
  recipe.pipeline = 2;
  recipe.virtual_stages = 4;
  recipe.bucket = 1000;
  EXPECT_EQ(print_torchtitan(recipe).lost,
            (std::vector<std::string>{"ZeRO 1: gradients are sharded too",
                                      "virtual stages 4: 2 per stage instead", "bucket size 1000"}));
}

// A recipe that all three can express is the same in each.
TEST(Languages, AgreeOnARecipe) {
  Recipe recipe;
  recipe.devices = 64;
  recipe.data = 64;
  recipe.zero = 3;
  recipe.micro_batch = 1;
  recipe.global_batch = 256;
  recipe.recompute = Recompute::full;
  recipe.precision = Precision::bf16;
  recipe.overlap_reduce = true;
  const auto megatron = read_megatron(print_megatron(recipe).text);
  ASSERT_TRUE(megatron.ok()) << megatron.error().message;
  EXPECT_TRUE(same_plan(*megatron, recipe));
  const auto deepspeed = read_deepspeed(print_deepspeed(recipe).text, 64);
  ASSERT_TRUE(deepspeed.ok()) << deepspeed.error().message;
  EXPECT_TRUE(same_plan(*deepspeed, recipe));
  if (!reads_toml()) return;
  EXPECT_TRUE(same_plan(read_titan(print_torchtitan(recipe).text), recipe));
}

}  // namespace
}  // namespace weft::recipe
