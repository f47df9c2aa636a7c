// ds_config.json as recipes and back.
#include <algorithm>

#include <gtest/gtest.h>

#include "weft/translate/recipe/languages.h"

namespace weft::recipe {
namespace {

constexpr std::string_view kConfig = R"({
  "train_batch_size": 256, "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": "auto",
  "zero_optimization": {"stage": 3, "overlap_comm": true, "reduce_bucket_size": 5e8, "contiguous_gradients": true,
                        "offload_optimizer": {"device": "cpu", "pin_memory": true}},
  "bf16": {"enabled": true}, "fp16": {"enabled": false}, "gradient_clipping": 1.0,
  "optimizer": {"type": "AdamW", "params": {"lr": 1e-4}}})";

Recipe read_config(std::string_view json, std::int64_t devices = 0) {
  const auto recipe = read_deepspeed(json, devices);
  EXPECT_TRUE(recipe.ok()) << recipe.error().message;
  return recipe.ok() ? *recipe : Recipe();
}

std::string config_refusal(std::string_view json, std::int64_t devices = 0) {
  const auto recipe = read_deepspeed(json, devices);
  EXPECT_FALSE(recipe.ok());
  return recipe.ok() ? "" : recipe.error().message;
}

TEST(Deepspeed, ReadsAConfiguration) {
  const Recipe recipe = read_config(kConfig, 16);
  EXPECT_EQ(recipe.zero, 3);
  EXPECT_EQ(recipe.data_degree(), 16);
  EXPECT_EQ(recipe.micro_batches(), 4);
  EXPECT_EQ(recipe.bucket, 500'000'000);
  EXPECT_TRUE(recipe.offload_optimizer);
  EXPECT_FALSE(recipe.offload_parameters);
  EXPECT_EQ(recipe.precision, Precision::bf16);
}

TEST(Deepspeed, PrintsWhatItReads) {
  const Recipe recipe = read_config(kConfig, 16);
  const Written written = print_deepspeed(recipe);
  EXPECT_TRUE(written.lost.empty());
  const Recipe again = read_config(written.text, 16);
  EXPECT_TRUE(same_plan(recipe, again)) << written.text;
  const auto in_order = [](std::vector<std::pair<std::string, std::string>> others) {
    std::ranges::sort(others);
    return others;
  };
  EXPECT_EQ(in_order(again.others), in_order(recipe.others));
  EXPECT_NE(written.text.find("\"contiguous_gradients\": true"), std::string::npos);
}

TEST(Deepspeed, InfersTheDataDegreeFromThreeBatchSizes) {
  EXPECT_EQ(read_config(R"({"train_batch_size": 64, "train_micro_batch_size_per_gpu": 2,
                            "gradient_accumulation_steps": 4})")
                .data_degree(),
            8);
  EXPECT_EQ(read_config(R"({"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 4})", 8)
                .global_batch,
            64);
  EXPECT_EQ(read_config(R"({"train_batch_size": 64, "gradient_accumulation_steps": 4})", 8).micro_batch, 2);
}

TEST(Deepspeed, NamesContradictions) {
  EXPECT_EQ(config_refusal(R"({"train_batch_size": 64, "train_micro_batch_size_per_gpu": 2,
                               "gradient_accumulation_steps": 4})",
                           16),
            "train_batch_size is not micro-batch x accumulation x data: 64 and 2 x 4 x 16");
  EXPECT_EQ(config_refusal(R"({"fp16": {"enabled": true}, "bf16": {"enabled": true}})"),
            "fp16 and bf16 are mutually exclusive: both are enabled");
  EXPECT_EQ(config_refusal(R"({"zero_optimization": {"stage": 2, "offload_param": {"device": "cpu"}}})"),
            "offloading parameters needs ZeRO 3, found ZeRO 2");
  EXPECT_EQ(config_refusal(R"({"tensor_parallel": {"autotp_size": 3}})", 8),
            "tensor x pipeline x context does not divide the number of devices: 3 x 1 x 1 and 8");
}

TEST(Deepspeed, NamesUnknownKeysAndWrongValues) {
  const auto near = read_deepspeed(R"({"train_bath_size": 8})");
  ASSERT_FALSE(near.ok());
  EXPECT_EQ(near.error().message, "unknown key: train_bath_size");
  EXPECT_EQ(near.error().hint, "did you mean 'train_batch_size'?");
  EXPECT_EQ(config_refusal(R"({"zero_optimization": {"stage": 4}})"),
            "zero_optimization.stage: expected 0 to 3, found 4");
  EXPECT_EQ(config_refusal(R"({"zero_optimization": {"stage": 3, "offload_param": {"device": "disk"}}})"),
            "zero_optimization.offload_param: expected device cpu, nvme or none, found 'disk'");
  EXPECT_EQ(config_refusal("{"), "expected JSON, found an error at byte 2");
  EXPECT_EQ(config_refusal("[]"), "expected an object, found a list");
  EXPECT_EQ(read_config(R"({"zebras": 1})").notes,
            std::vector<std::string>{"unknown, passed through: zebras"});
}

TEST(Deepspeed, ReportsWhatItHasNoKeyFor) {
  Recipe recipe;
  recipe.pipeline = 4;
  recipe.zero = 1;
  recipe.recompute = Recompute::selective;
  EXPECT_EQ(print_deepspeed(recipe).lost,
            (std::vector<std::string>{"pipeline 4: set by the program's PipelineModule",
                                      "selective recomputation"}));
}

}  // namespace
}  // namespace weft::recipe
