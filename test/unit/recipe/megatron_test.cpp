// Megatron-LM's flags as recipes and back, and contradictory flags.
#include <gtest/gtest.h>

#include "weft/translate/recipe/languages.h"

namespace weft::recipe {
namespace {

// The shape of a 70B run, in a command as users store it.
constexpr std::string_view kLarge = R"(torchrun --nproc_per_node 8 --nnodes=8 pretrain_gpt.py \
    --tensor-model-parallel-size 8 --sequence-parallel --pipeline-model-parallel-size 4 \
    --num-layers-per-virtual-pipeline-stage 5 \
    --num-layers 80 --hidden-size 8192 --num-attention-heads 64 --group-query-attention --num-query-groups 8 \
    --micro-batch-size 1 --global-batch-size 512 --seq-length 4096 \
    --use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather --bf16 \
    --recompute-granularity selective --lr 1.5e-4 --data-path 0.3 "my data" 0.7 other --swiglu)";

Recipe read(std::string_view flags) {
  const auto recipe = read_megatron(flags);
  EXPECT_TRUE(recipe.ok()) << recipe.error().message;
  return recipe.ok() ? *recipe : Recipe();
}

std::string refusal(std::string_view flags) {
  const auto recipe = read_megatron(flags);
  EXPECT_FALSE(recipe.ok());
  return recipe.ok() ? "" : recipe.error().message;
}

TEST(Megatron, ReadsACommand) {
  const Recipe recipe = read(kLarge);
  EXPECT_EQ(recipe.devices, 64);
  EXPECT_EQ(recipe.tensor, 8);
  EXPECT_EQ(recipe.pipeline, 4);
  EXPECT_EQ(recipe.virtual_stages, 4);
  EXPECT_EQ(recipe.data_degree(), 2);
  EXPECT_EQ(recipe.micro_batches(), 256);
  EXPECT_EQ(recipe.zero, 1);
  EXPECT_EQ(recipe.recompute, Recompute::selective);
  EXPECT_EQ(recipe.precision, Precision::bf16);
  EXPECT_TRUE(recipe.sequence_parallel);
  EXPECT_EQ(recipe.model.key_heads, 8);
  EXPECT_EQ(recipe.notes, std::vector<std::string>{
                              "not part of the estimate, kept unchanged: --lr, --data-path, --swiglu"});
}

TEST(Megatron, PrintsWhatItReads) {
  const Recipe recipe = read(kLarge);
  const Written written = print_megatron(recipe);
  EXPECT_TRUE(written.lost.empty());
  EXPECT_EQ(written.text, R"(torchrun --nproc-per-node 8 --nnodes 8 pretrain_gpt.py \
--tensor-model-parallel-size 8 \
--sequence-parallel \
--pipeline-model-parallel-size 4 \
--num-virtual-stages-per-pipeline-rank 4 \
--micro-batch-size 1 \
--global-batch-size 512 \
--seq-length 4096 \
--recompute-granularity selective \
--use-distributed-optimizer \
--overlap-grad-reduce \
--overlap-param-gather \
--bf16 \
--num-layers 80 \
--hidden-size 8192 \
--num-attention-heads 64 \
--group-query-attention \
--num-query-groups 8 \
--lr 1.5e-4 \
--data-path 0.3 "my data" 0.7 other \
--swiglu
)");
  const Recipe again = read(written.text);
  EXPECT_TRUE(same_plan(recipe, again));
  EXPECT_EQ(again.model, recipe.model);
  EXPECT_EQ(again.others, recipe.others);
}

TEST(Megatron, ReadsBackEveryFlag) {
  Recipe recipe;
  recipe.devices = 128;
  recipe.tensor = 2;
  recipe.pipeline = 4;
  recipe.context = 2;
  recipe.expert = 4;
  recipe.expert_tensor = 1;
  recipe.micro_batch = 2;
  recipe.global_batch = 256;
  recipe.sequence = 8192;
  recipe.recompute = Recompute::full;
  recipe.recompute_layers = 3;
  recipe.zero = 3;
  recipe.copies = 2;
  recipe.precision = Precision::fp8;
  recipe.bucket = 40'000'000;
  recipe.order = kPipelineInside;
  recipe.offload_optimizer = true;
  const Written written = print_megatron(recipe);
  EXPECT_TRUE(written.lost.empty());
  EXPECT_TRUE(same_plan(read(written.text), recipe)) << written.text;
}

TEST(Megatron, NamesContradictions) {
  EXPECT_EQ(refusal("--nproc-per-node 48 --tensor-model-parallel-size 8 --pipeline-model-parallel-size 4"),
            "tensor x pipeline x context does not divide the number of devices: 8 x 4 x 1 and 48");
  EXPECT_EQ(refusal("--nproc-per-node 8 --micro-batch-size 3 --global-batch-size 32"),
            "micro-batch x data does not divide the global batch: 3 x 8 and 32");
  EXPECT_EQ(refusal("--bf16 --fp16"), "--bf16 and --fp16 are mutually exclusive");
  EXPECT_EQ(refusal("--overlap-param-gather"), "--overlap-param-gather needs --use-distributed-optimizer");
  EXPECT_EQ(refusal("--use-distributed-optimizer --overlap-param-gather"),
            "--overlap-param-gather needs --overlap-grad-reduce");
  EXPECT_EQ(refusal("--recompute-granularity full"), "--recompute-granularity full needs --recompute-method");
  EXPECT_EQ(refusal("--recompute-method uniform"), "--recompute-method needs --recompute-granularity full");
  EXPECT_EQ(refusal("--num-virtual-stages-per-pipeline-rank 2"),
            "virtual stages need a pipeline: 2 virtual stages, 1 stage");
  EXPECT_EQ(
      refusal("--num-layers 8 --pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 2 "
              "--num-virtual-stages-per-pipeline-rank 2"),
      "--num-layers-per-virtual-pipeline-stage and --num-virtual-stages-per-pipeline-rank are mutually "
      "exclusive");
  EXPECT_EQ(
      refusal("--num-layers 10 --pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 2"),
      "--num-layers-per-virtual-pipeline-stage does not divide the layers of a stage: 2 and 10 / 2");
  EXPECT_EQ(refusal("--tensor-model-parallel-size 8 --num-attention-heads 12"),
            "tensor does not divide the attention heads: 8 and 12");
  EXPECT_EQ(refusal("--num-experts 8 --expert-model-parallel-size 3"),
            "expert does not divide the experts: 3 and 8");
  EXPECT_EQ(refusal("--context-parallel-size 4 --seq-length 4100"),
            "twice the context degree does not divide the sequence: 8 and 4100");
  EXPECT_EQ(refusal("--num-query-groups 8"), "--num-query-groups needs --group-query-attention");
}

TEST(Megatron, NamesUnknownFlags) {
  const auto near = read_megatron("--tensor-model-paralel-size 8");
  ASSERT_FALSE(near.ok());
  EXPECT_EQ(near.error().message, "unknown flag: --tensor-model-paralel-size");
  EXPECT_EQ(near.error().hint, "did you mean 'tensor-model-parallel-size'?");
  const Recipe far = read("--my-company-flag 3 4 --bf16");
  EXPECT_EQ(far.notes, std::vector<std::string>{"unknown, passed through: --my-company-flag"});
  EXPECT_EQ(print_megatron(far).text, "--bf16 \\\n--my-company-flag 3 4\n");
}

TEST(Megatron, RejectsInvalidText) {
  EXPECT_EQ(refusal("--tensor-model-parallel-size eight"),
            "--tensor-model-parallel-size: expected a whole number of at least 1, found 'eight'");
  EXPECT_EQ(
      refusal("--tensor-model-parallel-size 99999999999999999999"),
      "--tensor-model-parallel-size: expected a whole number of at least 1, found '99999999999999999999'");
  EXPECT_EQ(refusal("--tensor-model-parallel-size"),
            "--tensor-model-parallel-size: expected one value, found 0");
  EXPECT_EQ(refusal("--bf16 true"), "--bf16: expected no value, found 'true'");
  EXPECT_EQ(refusal("--seq-length 1 --seq-length 2"), "--seq-length is given twice");
  EXPECT_EQ(refusal("--data-path 'here"), "a quote is not closed: ' at byte 12");
  EXPECT_EQ(read("").tensor, 1);
  EXPECT_EQ(
      refusal("--tensor-model-parallel-size 1000000000000 --pipeline-model-parallel-size 1000000000000"),
      "tensor: expected a degree from 1 to 16777216, found 1000000000000");
}

TEST(Megatron, ReportsWhatItHasNoFlagFor) {
  Recipe recipe;
  recipe.zero = 3;
  recipe.offload_parameters = true;
  EXPECT_EQ(print_megatron(recipe).lost, std::vector<std::string>{"parameters in host memory"});
}

}  // namespace
}  // namespace weft::recipe
