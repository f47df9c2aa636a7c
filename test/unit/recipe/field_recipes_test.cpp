// A dozen typical training configurations, each in the syntax of its launcher: parsed, placed on a
// cluster, printed and parsed again.
#include <gtest/gtest.h>

#include "weft/translate/recipe/improve.h"

namespace weft::recipe {
namespace {

struct FieldRecipe {
  std::string_view what;
  Language language;
  std::string_view text;
  std::int64_t nodes;  // of 8 devices
  std::string_view plan;
};

// Written by us, with typical degrees for models of that size.
const FieldRecipe kField[] = {
    {"Llama 7B by Megatron", Language::megatron,
     "--tensor-model-parallel-size 2 --sequence-parallel --micro-batch-size 2 --global-batch-size 512 "
     "--seq-length 4096 "
     "--num-layers 32 --num-attention-heads 32 --use-distributed-optimizer --overlap-grad-reduce --bf16",
     8,
     "node=8: slice b, shard optimizer; gpu_a=4: slice b, shard optimizer; gpu_b=2: slice h, f, v, s; "
     "micro=8"},
    {"Llama 70B by Megatron", Language::megatron,
     "--tensor-model-parallel-size 8 --sequence-parallel --pipeline-model-parallel-size 4 "
     "--num-layers-per-virtual-pipeline-stage 5 --num-layers 80 --num-attention-heads 64 "
     "--group-query-attention "
     "--num-query-groups 8 --micro-batch-size 1 --global-batch-size 512 --seq-length 4096 "
     "--use-distributed-optimizer "
     "--bf16",
     8,
     "node_a=4: stage, chunks=4; node_b=2: slice b, shard optimizer; gpu=8: slice h, f, v, s; micro=256; "
     "schedule interleaved_one_f_one_b"},
    {"GPT-3 175B by Megatron", Language::megatron,
     "--tensor-model-parallel-size 8 --pipeline-model-parallel-size 16 --num-layers 96 --num-attention-heads "
     "96 "
     "--micro-batch-size 1 --global-batch-size 1536 --seq-length 2048 --fp16",
     128, "node_a=16: stage; node_b=8: slice b; gpu=8: slice h, f, v; micro=192; schedule one_f_one_b"},
    {"Mixtral 8x7B by Megatron", Language::megatron,
     "--tensor-model-parallel-size 2 --sequence-parallel --pipeline-model-parallel-size 4 "
     "--expert-model-parallel-size 8 --num-experts 8 --num-layers 32 --micro-batch-size 1 "
     "--global-batch-size 256 "
     "--seq-length 4096 --use-distributed-optimizer --bf16",
     8,
     "node_a=4: stage; node_b=8: slice x, b, shard optimizer; gpu=2: slice h, f, v, s; micro=32; "
     "schedule one_f_one_b"},
    {"Mistral 7B with long sequences by Megatron", Language::megatron,
     "--tensor-model-parallel-size 4 --sequence-parallel --context-parallel-size 2 --seq-length 32768 "
     "--micro-batch-size 1 --global-batch-size 128 --use-distributed-optimizer --bf16",
     8,
     "node=8: slice b, shard optimizer; gpu_a=2: slice s, shard optimizer; gpu_b=4: slice h, f, v, s; "
     "micro=16"},
    {"BERT by Megatron, data parallel alone", Language::megatron,
     "--micro-batch-size 4 --global-batch-size 256 --seq-length 512 --fp16", 8,
     "node=8: slice b; gpu=8: slice b"},
    {"GPT-2 by DeepSpeed, ZeRO 1", Language::deepspeed,
     R"({"train_batch_size": 512, "train_micro_batch_size_per_gpu": 8, "zero_optimization": {"stage": 1},
         "fp16": {"enabled": true}, "optimizer": {"type": "AdamW", "params": {"lr": 1e-4}}})",
     8, "node=8: slice b, shard optimizer; gpu=8: slice b, shard optimizer"},
    {"Qwen2 7B by DeepSpeed, ZeRO 3", Language::deepspeed,
     R"({"train_batch_size": 256, "gradient_accumulation_steps": 4, "zero_optimization": {"stage": 3,
         "overlap_comm": true, "reduce_bucket_size": 5e8}, "bf16": {"enabled": true}, "gradient_clipping": 1.0})",
     8, "node=8: slice b, shard parameters; gpu=8: slice b, shard parameters; micro=4"},
    {"T5 by DeepSpeed, ZeRO 2", Language::deepspeed,
     R"({"train_micro_batch_size_per_gpu": 16, "gradient_accumulation_steps": 2, "zero_optimization": {"stage": 2},
         "bf16": {"enabled": true}})",
     2, "node=2: slice b, shard optimizer; gpu=8: slice b, shard optimizer; micro=2"},
    {"Llama 8B by torchtitan, FSDP", Language::torchtitan,
     "[training]\nlocal_batch_size = 1\nglobal_batch_size = 64\nseq_len = 8192\n[parallelism]\n"
     "data_parallel_shard_degree = -1\ntensor_parallel_degree = 1\n[activation_checkpoint]\nmode = "
     "\"selective\"\n",
     8, "node=8: slice b, shard parameters; gpu=8: slice b, shard parameters; recompute selective"},
    {"ViT by torchtitan, HSDP", Language::torchtitan,
     "[training]\nlocal_batch_size = 16\nglobal_batch_size = "
     "1024\n[parallelism]\ndata_parallel_replicate_degree = 8\n"
     "data_parallel_shard_degree = 8\n",
     8, "node=8: slice b; gpu=8: slice b, shard parameters; recompute selective"},
    {"DeepSeek shapes by torchtitan, in stages", Language::torchtitan,
     "[training]\nlocal_batch_size = 16\nglobal_batch_size = 64\nseq_len = 4096\n[parallelism]\n"
     "data_parallel_shard_degree = 4\ntensor_parallel_degree = 8\npipeline_parallel_degree = 2\n"
     "pipeline_parallel_schedule = \"1F1B\"\npipeline_parallel_microbatch_size = 1\n",
     8,
     "node_a=2: stage; node_b=4: slice b, shard optimizer; gpu=8: slice h, f, v, s; micro=16; recompute "
     "selective; schedule one_f_one_b"},
};

Result<Recipe> read_in(Language language, std::string_view text, std::int64_t devices) {
  return read(language, text, devices);
}

TEST(FieldRecipes, RoundTrip) {
  const distribute::IndexRoles roles{{"b"}, {"s"}, {"h", "f", "v"}, {"x"}};
  for (const FieldRecipe& field : kField) {
    SCOPED_TRACE(field.what);
    const std::int64_t devices = 8 * field.nodes;
    auto read = read_in(field.language, field.text, devices);
    if (!read.ok() && field.language == Language::torchtitan && !read_torchtitan("").ok()) continue;
    ASSERT_TRUE(read.ok()) << read.error().message;
    read->devices = devices;
    ASSERT_TRUE(check(*read, devices).ok()) << check(*read, devices).error().message;
    cluster::Cluster cluster;
    cluster.axes = {{"node", field.nodes, {}}, {"gpu", 8, {}}};
    const auto spread_out = spread(*read, roles, cluster);
    ASSERT_TRUE(spread_out.ok()) << spread_out.error().message;
    EXPECT_EQ(print(spread_out->distribution), field.plan);
    // The printed configuration is the same plan: nothing of these is lost.
    const Written written = print(field.language, *read);
    auto again = read_in(field.language, written.text, devices);
    ASSERT_TRUE(again.ok()) << again.error().message << "\n" << written.text;
    again->devices = devices;
    const auto spread_again = spread(*again, roles, cluster);
    ASSERT_TRUE(spread_again.ok()) << spread_again.error().message;
    EXPECT_EQ(print(spread_again->distribution), field.plan) << written.text;
  }
}

}  // namespace
}  // namespace weft::recipe
