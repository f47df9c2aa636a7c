// Python files of a plan: what torchtitan's file states, and what it reports as lost.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "weft/translate/recipe/titan_config.h"

namespace weft::recipe {
namespace {

TorchPlan staged() {
  TorchPlan plan;
  plan.model = "gpt";
  plan.distribution = "gpu=2: stage; micro=2";
  plan.layers = 3;
  plan.micro_batches = 2;
  plan.stage_layers = {2, 1};
  plan.stage_of = {{"words", 0}, {"head", 1}};
  plan.schedule = "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n";
  return plan;
}

GatheredRecipe on_stages() {
  GatheredRecipe gathered;
  gathered.recipe.devices = gathered.recipe.pipeline = 2;
  gathered.recipe.data = 1;
  gathered.recipe.micro_batch = 4;
  gathered.recipe.global_batch = 8;
  gathered.recipe.sequence = 512;
  gathered.recipe.precision = Precision::bf16;
  return gathered;
}

bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

TEST(TitanConfig, StatesStagesAndSchedule) {
  const Written written = print_titan_config(staged(), on_stages());
  EXPECT_TRUE(written.lost.empty());
  EXPECT_TRUE(has(written.text, R"(STAGES = [
    ["tok_embeddings", "layers.0", "layers.1"],
    ["layers.2", "norm", "lm_head"],
])")) << written.text;
  EXPECT_TRUE(has(written.text, "SCHEDULE = \"\"\"\n0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n\"\"\"\n"));
  EXPECT_TRUE(has(written.text, "\"num_tokens_per_microbatch_per_dp_rank\": 2048,"));
  EXPECT_TRUE(has(written.text, "\"num_tokens_per_train_step\": 4096,"));
  EXPECT_TRUE(has(written.text, "\"disable_cuda_graphs\": True,"));
  EXPECT_TRUE(has(written.text, "def config("));
}

// torchtitan places stages by its schedule's name.
TEST(TitanConfig, NamesAScheduleWithTheSamePlaces) {
  TorchPlan plan = staged();
  for (const auto& [route, name] :
       {std::pair(pipeline::Route::line, "1F1B"), std::pair(pipeline::Route::loop, "Interleaved1F1B"),
        std::pair(pipeline::Route::v, "ZBVZeroBubble")}) {
    plan.route = route;
    EXPECT_TRUE(has(print_titan_config(plan, on_stages()).text,
                    fmt::format("\"pipeline_parallel_schedule\": \"{}\",", name)))
        << name;
  }
}

TEST(TitanConfig, LeavesOutStagesThatAPlanLacks) {
  TorchPlan plan;
  plan.model = "gpt";
  GatheredRecipe gathered = on_stages();
  gathered.recipe.pipeline = 1;
  gathered.recipe.data = 2;
  gathered.recipe.zero = 3;
  const Written written = print_titan_config(plan, gathered);
  EXPECT_FALSE(has(written.text, "\nSTAGES ="));
  EXPECT_FALSE(has(written.text, "num_pp_microbatches"));
  EXPECT_FALSE(has(written.text, "disable_cuda_graphs"));
  EXPECT_TRUE(has(written.text, "\"data_parallel_shard_degree\": 2,"));
  EXPECT_TRUE(has(written.text, "\"fsdp_reshard_after_forward\": \"always\","));
}

TEST(TitanConfig, ReportsWhatItCannotState) {
  TorchPlan plan = staged();
  plan.stage_layers = {1, 1, 1};
  plan.stage_of = {{"adapter", 1}};
  plan.stages_lost = {"stage boundaries within layers: moved to the nearest layer"};
  GatheredRecipe gathered = on_stages();
  gathered.recipe.zero = 1;
  gathered.recipe.offload_optimizer = true;
  gathered.recipe.precision = Precision::fp8;
  gathered.recipe.order = kPipelineInside;
  gathered.recipe.sequence = 0;
  // The CSV states the schedule.
  gathered.lost = {"schedule zb_h1: replaced by one_f_one_b", "3 tensors with another sharding, such as w"};
  const Written written = print_titan_config(plan, gathered);
  EXPECT_EQ(
      written.lost,
      (std::vector<std::string>{
          "stage boundaries within layers: moved to the nearest layer",
          "3 tensors with another sharding, such as w",
          "adapter on stage 1: the first stage has the embeddings, the last one norm and head",
          "ZeRO 1: gradients are sharded too",
          "optimizer states in host memory: parameters and gradients, too", "fp8: set by a model converter",
          "rank order tp-cp-ep-pp-dp", "tokens per step: the model has no sequence"}));
  for (const std::string& lost : written.lost) EXPECT_TRUE(has(written.text, lost)) << lost;
}

// Names may have quotes: CREATE MODEL "a""b".
TEST(TitanConfig, QuotesNames) {
  TorchPlan plan = staged();
  plan.model = "a\"\"\"b\\";
  plan.distribution = "x\"";
  const std::string text = print_titan_config(plan, on_stages()).text;
  EXPECT_TRUE(text.starts_with("\"\"\"A plan of a\\\"\\\"\\\"b\\\\ for torchtitan: x\\\"\n"))
      << text.substr(0, 80);
  EXPECT_TRUE(print_torch(plan).text.starts_with("\"\"\"A plan of a\\\"\\\"\\\"b\\\\ for PyTorch: x\\\"\n"));
}

}  // namespace
}  // namespace weft::recipe
