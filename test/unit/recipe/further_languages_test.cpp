// NeMo, Megatron Bridge, Accelerate and MaxText: what is read, what is refused, and what reads back.
#include <gtest/gtest.h>

#include "weft/translate/recipe/language.h"

namespace weft::recipe {
namespace {

Recipe read_in(Language language, std::string_view text, std::int64_t devices = 64) {
  auto recipe = read(language, text, devices);
  EXPECT_TRUE(recipe.ok()) << recipe.error().message;
  return recipe.ok() ? std::move(*recipe) : Recipe();
}

std::string refusal_in(Language language, std::string_view text, std::int64_t devices = 64) {
  const auto recipe = read(language, text, devices);
  EXPECT_FALSE(recipe.ok()) << text;
  return recipe.ok() ? "" : recipe.error().message;
}

// A plan that each of the languages can express reads back.
TEST(FurtherLanguages, ReadBackWhatTheyPrint) {
  Recipe recipe;
  recipe.devices = 64;
  recipe.data = 8;
  recipe.tensor = 8;
  recipe.micro_batch = 2;
  recipe.global_batch = 256;
  recipe.sequence = 4096;
  recipe.precision = Precision::bf16;
  recipe.overlap_reduce = true;
  recipe.model = {.layers = 32, .hidden = 4096, .heads = 32, .key_heads = 8, .inner = 11008};
  for (const Language language : kLanguages) {
    for (const int zero : {0, 1, 2, 3})
      for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
        Recipe asked = recipe;
        asked.zero = zero;
        asked.recompute = recompute;
        // The program checkpoints layers or not.
        Recipe today = asked;
        if (recompute == Recompute::selective) today.recompute = Recompute::none;
        const auto said = expressible_in(language, asked, today);
        if (!said) continue;
        const Written written = print(language, *said);
        auto again = read(language, written.text, 64);
        if (!again.ok() && again.error().message.find("without toml++") != std::string::npos) continue;
        ASSERT_TRUE(again.ok()) << name(language) << ": " << again.error().message << "\n" << written.text;
        again->devices = 64;
        Recipe known = *said;
        if (again->global_batch == 0) known.global_batch = 0;
        if (again->micro_batch == 0) known.micro_batch = 0;
        if (again->sequence == 0) known.sequence = 0;
        EXPECT_TRUE(same_plan(*again, known)) << name(language) << "\n" << written.text;
      }
  }
}

TEST(Nemo, ReadsBothVersions) {
  const Recipe one = read_in(Language::nemo, R"(
trainer: {devices: 8, num_nodes: 8, precision: bf16-mixed}
model:
  tensor_model_parallel_size: 4
  pipeline_model_parallel_size: 2
  virtual_pipeline_model_parallel_size: 4
  sequence_parallel: True
  micro_batch_size: 1
  global_batch_size: 512
  encoder_seq_length: 4096
  num_layers: 32
  activations_checkpoint_granularity: null
  optim: {name: mcore_distributed_optim, lr: 3e-4}
)");
  EXPECT_EQ(one.devices, 64);
  EXPECT_EQ(one.tensor, 4);
  EXPECT_EQ(one.virtual_stages, 4);
  EXPECT_EQ(one.zero, 1);
  EXPECT_EQ(one.precision, Precision::bf16);
  EXPECT_TRUE(one.sequence_parallel);
  EXPECT_EQ(one.recompute, Recompute::none);
  const Recipe two =
      read_in(Language::nemo,
              "trainer.strategy.tensor_model_parallel_size=4 trainer.devices=8 trainer.num_nodes=8 "
              "data.global_batch_size=512 data.micro_batch_size=1 "
              "trainer.strategy.ddp.use_distributed_optimizer=true");
  EXPECT_EQ(two.tensor, 4);
  EXPECT_EQ(two.zero, 1);
  EXPECT_EQ(two.micro_batches(), 32);
}

TEST(Nemo, NamesErrors) {
  EXPECT_EQ(refusal_in(Language::nemo, "model: {tensor_model_parallel_size: four}"),
            "model.tensor_model_parallel_size: expected a whole number of at least 1, found 'four'");
  EXPECT_EQ(refusal_in(Language::nemo, "model: {tensor_model_paralel_size: 4, micro_batch_size: 1}"),
            "unknown setting: model.tensor_model_paralel_size");
  EXPECT_EQ(
      refusal_in(Language::nemo,
                 "model: {tensor_model_parallel_size: 4}\ntrainer: {strategy: {context_parallel_size: 2}}"),
      "trainer.strategy.context_parallel_size is a setting of NeMo 2, model.tensor_model_parallel_size one "
      "of "
      "NeMo 1");
  EXPECT_EQ(refusal_in(Language::nemo, "model: {num_query_groups: 8, tensor_model_parallel_size: 16}"),
            "model.tensor_model_parallel_size does not divide model.num_query_groups: 16 and 8");
  EXPECT_NE(refusal_in(Language::nemo, "model: [").find("expected YAML, found an error in line 1"),
            std::string::npos);
  EXPECT_EQ(refusal_in(Language::nemo, "- 1\n"), "expected settings, found a value without a name");
}

TEST(Bridge, ReadsOverridesAndYaml) {
  const Recipe words = read_in(Language::bridge,
                               "model.tensor_model_parallel_size=2 model.expert_model_parallel_size=8 "
                               "model.num_moe_experts=8 train.global_batch_size=256 train.micro_batch_size=1 "
                               "ddp.use_distributed_optimizer=true mixed_precision=bf16_mixed");
  const Recipe yaml = read_in(Language::bridge, R"(
model: {tensor_model_parallel_size: 2, expert_model_parallel_size: 8, num_moe_experts: 8}
train: {global_batch_size: 256, micro_batch_size: 1}
ddp: {use_distributed_optimizer: true}
mixed_precision: bf16_mixed
)");
  EXPECT_TRUE(same_plan(words, yaml));
  EXPECT_EQ(words.expert, 8);
  EXPECT_EQ(words.zero, 1);
  EXPECT_EQ(words.precision, Precision::bf16);
  EXPECT_EQ(read_in(Language::bridge, "mixed_precision=bf16_with_fp8_current_scaling_mixed").precision,
            Precision::fp8);
  EXPECT_EQ(refusal_in(Language::bridge, "data.global_batch_size=8"),
            "data.global_batch_size is a setting of NeMo 2, not of Megatron Bridge");
  EXPECT_EQ(refusal_in(Language::bridge, "mixed_precision=int8"),
            "mixed_precision: expected bf16_mixed, fp16_mixed or one with fp8 or nvfp4, found 'int8'");
}

constexpr std::string_view kAccelerate = R"(compute_environment: LOCAL_MACHINE
distributed_type: FSDP
downcast_bf16: 'no'
fsdp_config:
  fsdp_activation_checkpointing: true
  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP
  fsdp_offload_params: false
  fsdp_sharding_strategy: HYBRID_SHARD
  fsdp_version: 1
mixed_precision: bf16
num_machines: 8
num_processes: 64
)";

TEST(Accelerate, ReadsFsdp) {
  const Recipe recipe = read_in(Language::accelerate, kAccelerate);
  EXPECT_EQ(recipe.devices, 64);
  EXPECT_EQ(recipe.zero, 3);
  EXPECT_EQ(recipe.copies, 8);
  EXPECT_EQ(recipe.recompute, Recompute::full);
  EXPECT_EQ(recipe.precision, Precision::bf16);
  const Recipe two = read_in(Language::accelerate,
                             "distributed_type: FSDP\nfsdp_config:\n  fsdp_version: 2\n  "
                             "fsdp_reshard_after_forward: false\nnum_processes: 8\nnum_machines: 1\n");
  EXPECT_EQ(two.zero, 2);
  EXPECT_EQ(read_in(Language::accelerate, "distributed_type: MULTI_GPU\nnum_processes: 8\n").zero, 0);
}

TEST(Accelerate, NamesErrors) {
  EXPECT_EQ(refusal_in(Language::accelerate, "distributed_type: DEEPSPEED"),
            "distributed_type: expected FSDP, MULTI_GPU or NO, found DEEPSPEED");
  EXPECT_EQ(refusal_in(Language::accelerate, "distributed_type: FSDP\nfsdp_config: {fsdp_version: 3}"),
            "fsdp_config.fsdp_version: expected 1 or 2, found 3");
  EXPECT_EQ(refusal_in(
                Language::accelerate,
                "distributed_type: FSDP\nfsdp_config: {fsdp_version: 2, fsdp_sharding_strategy: FULL_SHARD}"),
            "fsdp_config.fsdp_sharding_strategy is a setting of FSDP version 1, found with fsdp_version 2");
  EXPECT_EQ(refusal_in(Language::accelerate, "num_processes: 9\nnum_machines: 2"),
            "num_machines does not divide num_processes: 2 and 9");
  EXPECT_EQ(refusal_in(Language::accelerate, "mixed_precision: bf17"),
            "mixed_precision: expected no, fp16, bf16, fp8, found 'bf17'");
}

TEST(Maxtext, ReadsDegreesWithinAndAcrossSlices) {
  const Recipe recipe =
      read_in(Language::maxtext,
              "per_device_batch_size: 0.5\nmax_target_length: 4096\nici_tensor_parallelism: 4\n"
              "dcn_data_parallelism: 8\nremat_policy: full\n");
  EXPECT_EQ(recipe.tensor, 4);
  EXPECT_EQ(recipe.data_degree(), 16);  // 8 slices x fsdp 2, the rest of a slice
  EXPECT_EQ(recipe.copies, 8);
  EXPECT_EQ(recipe.zero, 3);
  EXPECT_EQ(recipe.global_batch, 32);
  EXPECT_EQ(recipe.micro_batch, 2);
  EXPECT_EQ(recipe.recompute, Recompute::full);
  const Recipe staged =
      read_in(Language::maxtext,
              "python train.py base.yml ici_pipeline_parallelism=4 num_pipeline_microbatches=8 "
              "per_device_batch_size=2 ici_fsdp_parallelism=16");
  EXPECT_EQ(staged.pipeline, 4);
  EXPECT_EQ(staged.micro_batches(), 8);
  EXPECT_EQ(staged.schedule, kAllForward);
}

TEST(Maxtext, NamesErrors) {
  EXPECT_EQ(refusal_in(Language::maxtext, "ici_tensor_paralelism: 4"),
            "unknown setting: ici_tensor_paralelism");
  EXPECT_EQ(refusal_in(Language::maxtext, "ici_tensor_parallelism: -1"),
            "ici_tensor_parallelism and ici_fsdp_parallelism are both -1");
  EXPECT_EQ(refusal_in(Language::maxtext, "ici_tensor_parallelism: 3"),
            "the degrees within and across slices do not divide the devices: 3 x 1 and 64");
  EXPECT_EQ(
      refusal_in(Language::maxtext, "per_device_batch_size: 0.3"),
      "per_device_batch_size x devices x gradient_accumulation_steps is not a whole batch: 0.3 x 64 x 1");
}

}  // namespace
}  // namespace weft::recipe
