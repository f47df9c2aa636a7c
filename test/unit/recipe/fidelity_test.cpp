// A user's configuration with a better plan: only what changes is changed, and all else stays as written.
#include <gtest/gtest.h>

#include "weft/translate/recipe/language.h"

namespace weft::recipe {
namespace {

constexpr std::int64_t kDevices = 64;

Recipe read_given(Language language, std::string_view text) {
  auto recipe = read(language, text, kDevices);
  EXPECT_TRUE(recipe.ok()) << recipe.error().message;
  if (!recipe.ok()) return {};
  recipe->devices = kDevices;
  return std::move(*recipe);
}

// The text with twice the micro-batch and half the tensor parallelism.
std::string with_a_change(Language language, std::string_view text) {
  const Recipe today = read_given(language, text);
  Recipe better = today;
  better.micro_batch *= 2;
  if (better.tensor > 1) better.tensor /= 2;
  better.data = 0;
  better.data = better.data_degree();
  return rewrite(language, text, today, better).after.text;
}

TEST(Fidelity, FlagsKeepTheirWordsAndOrder) {
  EXPECT_EQ(with_a_change(Language::megatron,
                          "torchrun --nproc-per-node 8 --nnodes=8 train.py --lr 3e-4 --micro-batch-size 2 "
                          "--data-path 0.3 \"my data\" --tensor-model-parallel-size=4 --bf16 "
                          "--global-batch-size 0512"),
            "torchrun --nproc-per-node 8 --nnodes=8 train.py \\\n--lr 3e-4 \\\n--micro-batch-size 4 \\\n"
            "--data-path 0.3 \"my data\" \\\n--tensor-model-parallel-size=2 \\\n--bf16 \\\n"
            "--global-batch-size 0512\n");
}

TEST(Fidelity, JsonKeepsItsNumbers) {
  EXPECT_EQ(with_a_change(Language::deepspeed,
                          R"({"train_batch_size": 512, "train_micro_batch_size_per_gpu": 2,
  "zero_optimization": {"stage": 3, "reduce_bucket_size": 5e8, "stage3_param_persistence_threshold": "auto"},
  "bf16": {"enabled": true}, "optimizer": {"type": "AdamW", "params": {"lr": 3e-4, "betas": [0.9, 0.950]}}})"),
            R"({
  "train_batch_size": 512,
  "train_micro_batch_size_per_gpu": 4,
  "gradient_accumulation_steps": 2,
  "zero_optimization": {
    "stage": 3,
    "reduce_bucket_size": 5e8,
    "stage3_param_persistence_threshold": "auto"
  },
  "bf16": {
    "enabled": true
  },
  "optimizer": {
    "type": "AdamW",
    "params": {
      "lr": 3e-4,
      "betas": [0.9, 0.950]
    }
  }
}
)");
}

TEST(Fidelity, TomlKeepsCommentsAndUnstatedDefaults) {
  if (!read_torchtitan("").ok()) GTEST_SKIP() << "built without toml++";
  EXPECT_EQ(with_a_change(Language::torchtitan, R"(# our job
[optimizer]
lr = 3e-4  # as published

[training]
local_batch_size = 2
global_batch_size = 512

[parallelism]
tensor_parallel_degree = 4 # one host
)"),
            R"(# our job
[optimizer]
lr = 3e-4  # as published

[training]
local_batch_size = 4
global_batch_size = 512

[parallelism]
tensor_parallel_degree = 2 # one host
)");
}

TEST(Fidelity, YamlKeepsCommentsAndIndents) {
  EXPECT_EQ(with_a_change(Language::nemo, R"(trainer:
    devices: 8   # per node
    num_nodes: 8
    precision: bf16
model:
    # batches
    micro_batch_size: 2
    global_batch_size: 512
    tensor_model_parallel_size: 4
    optim:
        name: distributed_fused_adam
        lr: 3e-4
)"),
            R"(trainer:
    devices: 8   # per node
    num_nodes: 8
    precision: bf16
model:
    # batches
    micro_batch_size: 4
    global_batch_size: 512
    tensor_model_parallel_size: 2
    optim:
        name: distributed_fused_adam
        lr: 3e-4
)");
}

TEST(Fidelity, OverridesStayOverrides) {
  EXPECT_EQ(with_a_change(Language::bridge,
                          "python train.py model.tensor_model_parallel_size=4 train.micro_batch_size=2 "
                          "train.global_batch_size=512 optimizer.lr=3e-4"),
            "python train.py \\\nmodel.tensor_model_parallel_size=2 \\\ntrain.micro_batch_size=4 \\\n"
            "train.global_batch_size=512 \\\noptimizer.lr=3e-4\n");
}

// A text in a form that is not edited line by line is written anew, and means the same.
TEST(Fidelity, FlowStyleIsWrittenAnew) {
  const std::string text =
      with_a_change(Language::nemo,
                    "{trainer: {devices: 8, num_nodes: 8, precision: bf16}, model: {micro_batch_size: 2, "
                    "global_batch_size: 512, tensor_model_parallel_size: 4, optim: {lr: 3e-4}}}\n");
  const Recipe again = read_given(Language::nemo, text);
  EXPECT_EQ(again.tensor, 2);
  EXPECT_EQ(again.micro_batch, 4);
  EXPECT_NE(text.find("3e-4"), std::string::npos) << text;
}

// A plan that changes nothing changes nothing in the text.
TEST(Fidelity, TheSamePlanIsTheSameText) {
  const std::string_view texts[] = {
      "--tensor-model-parallel-size 4 --num-layers 32 --pipeline-model-parallel-size 2 "
      "--num-layers-per-virtual-pipeline-stage 4 --micro-batch-size 1 --global-batch-size 512\n",
      "--recompute-activations --micro-batch-size 1 --global-batch-size 512 --fp16\n"};
  for (const std::string_view text : texts) {
    const Recipe today = read_given(Language::megatron, text);
    const Rewritten made = rewrite(Language::megatron, text, today, today);
    EXPECT_EQ(made.before, made.after.text);
  }
}

// Flags with another meaning for the same setting are replaced, not added to.
TEST(Fidelity, ReplacesOtherNames) {
  const std::string_view text = "--recompute-activations --micro-batch-size 1 --global-batch-size 512";
  const Recipe today = read_given(Language::megatron, text);
  Recipe better = today;
  better.recompute = Recompute::none;
  EXPECT_EQ(rewrite(Language::megatron, text, today, better).after.text,
            "--micro-batch-size 1 \\\n--global-batch-size 512\n");
}

TEST(Fidelity, NamesWhatIsNotEstimated) {
  const Recipe recipe = read_given(Language::megatron, "--lr 3e-4 --tp-comm-overlap --my-flag 1 --swiglu");
  EXPECT_EQ(recipe.notes, (std::vector<std::string>{
                              "--tp-comm-overlap: estimated without overlap of tensor-parallel communication",
                              "unknown, passed through: --my-flag",
                              "not part of the estimate, kept unchanged: --lr, --swiglu"}));
}

TEST(Fidelity, NamesTheNearestLegalValues) {
  const auto hint = [](std::string_view flags) {
    const auto recipe = read_megatron(flags);
    EXPECT_FALSE(recipe.ok());
    return recipe.ok() ? std::string() : recipe.error().hint;
  };
  EXPECT_EQ(hint("--num-attention-heads 96 --tensor-model-parallel-size 7"),
            "the nearest that divide 96: 6 and 8");
  EXPECT_EQ(hint("--num-experts 8 --expert-model-parallel-size 16"), "the nearest that divides 8: 8");
  EXPECT_EQ(hint("--nproc-per-node 8 --micro-batch-size 3 --global-batch-size 32"),
            "the nearest batches: 24 and 48");
  EXPECT_EQ(hint("--num-attention-heads 64 --group-query-attention --num-query-groups 8 "
                 "--tensor-model-parallel-size 16"),
            "the nearest degree that does is 8");
}

// Megatron has hundreds of flags: one that only resembles a known one is not a misspelling.
TEST(Fidelity, OnlyNearlyEqualNamesAreMisspelled) {
  EXPECT_TRUE(read_megatron("--eval-micro-batch-size 4").ok());
  EXPECT_FALSE(read_megatron("--micro-batch-sizes 4").ok());
}

TEST(Fidelity, DeepspeedsAutoIsTheTrainersDefault) {
  const Recipe recipe = read_given(
      Language::deepspeed,
      R"({"train_batch_size": "auto", "train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto",
          "bf16": {"enabled": "auto"}, "zero_optimization": {"stage": 2, "reduce_bucket_size": "auto"}})");
  EXPECT_EQ(recipe.micro_batch, 8);
  EXPECT_EQ(recipe.global_batch, 8 * kDevices);
  EXPECT_EQ(recipe.precision, Precision::f32);
  EXPECT_EQ(recipe.notes.size(), 3U);
}

TEST(Fidelity, TorchtitansDefaultBatchIsOnePassPerRank) {
  if (!read_torchtitan("").ok()) GTEST_SKIP() << "built without toml++";
  const Recipe recipe = read_given(
      Language::torchtitan, "[training]\nlocal_batch_size = 4\n[parallelism]\ntensor_parallel_degree = 8\n");
  EXPECT_EQ(recipe.global_batch, 0);
  EXPECT_EQ(recipe.default_batch, 4 * kDevices / 8);
}

}  // namespace
}  // namespace weft::recipe
