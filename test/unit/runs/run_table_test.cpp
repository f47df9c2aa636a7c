// Tables of measured training runs: the four forms become the same rows; bad rows are named, never guessed.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "weft/base/random.h"
#include "weft/translate/runs/run.h"

namespace weft::runs {
namespace {

constexpr std::string_view kHeader = "id,layers,hidden,heads,gpu,gpus,tp,pp,dp,mbs,gbs,seq,step_s,mem_gib\n";

Result<Run> read_one(std::string_view values) {
  auto rows = read_run_table(std::string(kHeader) + std::string(values) + "\n", "runs.csv");
  if (!rows.ok()) return rows.error();
  return run_of(rows->front());
}

std::string error_of(std::string_view values) {
  const auto run = read_one(values);
  return run.ok() ? "" : run.error().message;
}

TEST(RunTable, ReadsARowOfCsv) {
  const auto run = read_one("a,24,1024,16,H100-SXM-80GB,16,2,4,2,1,64,2048,1.5,40");
  ASSERT_TRUE(run.ok()) << run.error().message;
  EXPECT_EQ(run->id, "a");
  EXPECT_EQ(run->recipe.tensor, 2);
  EXPECT_EQ(run->recipe.pipeline, 4);
  EXPECT_EQ(run->recipe.data, 2);
  EXPECT_EQ(run->cluster.devices, 16);
  EXPECT_EQ(run->cluster.devices_per_node, 8);
  EXPECT_DOUBLE_EQ(run->step_seconds, 1.5);
  EXPECT_DOUBLE_EQ(run->peak_bytes, 40.0 * (1 << 30));
  EXPECT_EQ(device_name(run->cluster.device), "h100");
}

TEST(RunTable, DerivesTheStepFromTokensPerSecond) {
  const auto rows = read_run_table(
      "id,layers,hidden,heads,gpu,gpus,mbs,gbs,seq,tok_s_gpu\n"
      "a,2,128,4,A100,8,1,8,1000,500\n",
      "runs.csv");
  ASSERT_TRUE(rows.ok());
  const auto run = run_of(rows->front());
  ASSERT_TRUE(run.ok()) << run.error().message;
  EXPECT_DOUBLE_EQ(run->step_seconds, 2.0);
}

TEST(RunTable, KeepsQuotedCommas) {
  const auto rows = read_run_table("id,note,gpu\na,\"one, \"\"two\"\"\",h100\n", "runs.csv");
  ASSERT_TRUE(rows.ok());
  EXPECT_EQ(rows->front().fields.at("note"), "one, \"two\"");
}

TEST(RunTable, ReadsRecordsColumnsAndFlags) {
  const auto records = read_run_table(
      R"({"schema": "weft-published-v1", "records": [{"id": "r", "model": {"layers": 2, "hidden": 128, "heads": 4,
      "seq": 64}, "hardware": {"gpu": "A100-SXM-80GB", "num_gpus": 8, "mem_gb": 80}, "parallel": {"tp": 2,
      "micro_batch": 1, "global_batch": 16}, "measured": {"iter_s": 2, "mem_gb": 10}}]})",
      "records.json");
  ASSERT_TRUE(records.ok()) << records.error().message;
  const auto columns = read_run_table(
      R"({"common": {"gpu": "A100", "seq": 64}, "columns": ["layers", "hidden", "heads", "num_gpus", "tp",
      "micro_batch", "global_batch", "iter_ms"], "rows": [[2, 128, 4, 8, 2, 1, 16, 2000]]})",
      "columns.json");
  ASSERT_TRUE(columns.ok()) << columns.error().message;
  const auto flags = read_run_table(
      R"({"id": "f", "gpu": "A100", "world": 8, "step_ms": 2000, "flags": {"num-layers": 2, "hidden-size": 128,
)"
      R"("num-attention-heads": 4, "seq-length": 64, "micro-batch-size": 1, "global-batch-size": 16,
"tensor-model-parallel-size": 2, "bf16": true}})",
      "flags.json");
  EXPECT_FALSE(flags.ok());  // one object per line in a .jsonl
  for (const auto* rows : {&records, &columns}) {
    const auto run = run_of((*rows)->front());
    ASSERT_TRUE(run.ok()) << run.error().message;
    EXPECT_EQ(run->recipe.tensor, 2);
    EXPECT_EQ(run->recipe.data, 4);
    EXPECT_DOUBLE_EQ(run->step_seconds, 2.0);
  }
  EXPECT_DOUBLE_EQ(run_of(records->front())->cluster.memory_bytes, 80e9);
  EXPECT_DOUBLE_EQ(run_of(records->front())->peak_bytes, 10e9);
}

TEST(RunTable, ReadsMegatronsFlags) {
  const auto rows = read_run_table(
      R"({"id": "f", "gpu": "H100", "world": 8, "nodes": 1, "step_ms": 500, "flags": {"num-layers": 12, "hidden-size": 512, "num-attention-heads": 8, "seq-length": 1024, "micro-batch-size": 4, "global-batch-size": 32, "pipeline-model-parallel-size": 2, "num-layers-per-virtual-pipeline-stage": 3, "use-distributed-optimizer": true, "bf16": true}})",
      "flags.jsonl");
  ASSERT_TRUE(rows.ok()) << rows.error().message;
  const auto run = run_of(rows->front());
  ASSERT_TRUE(run.ok()) << run.error().message;
  EXPECT_EQ(run->recipe.virtual_stages, 2);
  EXPECT_EQ(run->recipe.zero, 1);
  EXPECT_EQ(run->recipe.precision, recipe::Precision::bf16);
}

TEST(RunTable, NamesWhatIsMissingOrImpossible) {
  EXPECT_EQ(error_of("a,,1024,16,h100,16,2,4,2,1,64,2048,1.5,40"), "layers is missing");
  EXPECT_EQ(error_of("a,24,1024,16,,16,2,4,2,1,64,2048,1.5,40"), "gpu is missing");
  EXPECT_EQ(error_of("a,24,1024,16,h900,16,2,4,2,1,64,2048,1.5,40"), "unknown device: h900");
  EXPECT_EQ(error_of("a,24,1024,16,h100,16,3,4,2,1,64,2048,1.5,40"),
            "tp x pp x cp must divide gpus, found 12 and 16");
  EXPECT_EQ(error_of("a,24,1024,16,h100,16,2,4,4,1,64,2048,1.5,40"),
            "dp must be gpus / (tp x pp x cp) = 2, found 4");
  EXPECT_EQ(error_of("a,24,1024,16,h100,16,2,4,2,3,64,2048,1.5,40"),
            "mbs x dp must divide gbs, found 6 and 64");
  EXPECT_EQ(error_of("a,24,1024,16,h100,16,2,4,2,1,,2048,1.5,40"), "gbs is missing");
  EXPECT_EQ(error_of("a,24,1000,16,h100,16,2,4,2,1,64,2048,1.5,40"),
            "heads must divide hidden, found 16 and 1000");
  EXPECT_EQ(error_of("a,24,1024,16,h100,16,2.5,4,2,1,64,2048,1.5,40"),
            "tp must be a whole number of at most 1048576, found 2.5");
  EXPECT_EQ(error_of("a,24,1024,16,h100,16,2,4,2,1,64,2048,,"),
            "neither a step time nor memory was measured");
}

// A row of experts, with the columns model, ffn, experts, topk, kv_heads, gated and precision.
Result<Run> read_model(std::string_view values) {
  auto rows = read_run_table(
      "id,layers,hidden,heads,gpu,gpus,mbs,gbs,seq,step_s,model,ffn,experts,topk,"
      "kv_heads,gated,precision\n" +
          std::string(values) + "\n",
      "runs.csv");
  if (!rows.ok()) return rows.error();
  return run_of(rows->front());
}

// Megatron and NeMo slice experts as the rest of the model unless they are told otherwise.
TEST(RunTable, SlicesExpertsAsTheFrameworkDoes) {
  const auto read = [](std::string_view framework) {
    auto rows = read_run_table(
        fmt::format("id,layers,hidden,heads,gpu,gpus,tp,ep,mbs,gbs,seq,step_s,model,framework,etp\n"
                    "a,48,2048,32,h100,8,4,2,1,64,4096,1,Qwen3_30B_a3B,{},\n",
                    framework),
        "runs.csv");
    return rows.ok() ? run_of(rows->front()) : Result<runs::Run>(rows.error());
  };
  const auto nemo = read("nemo"), other = read("");
  ASSERT_TRUE(nemo.ok()) << nemo.error().message;
  ASSERT_TRUE(other.ok()) << other.error().message;
  EXPECT_EQ(nemo->recipe.expert_tensor, 0);
  EXPECT_EQ(other->recipe.expert_tensor, 1);
}

bool config_has(const Result<Run>& run, std::string_view text) {
  return run.ok() && run->config.find(text) != std::string::npos;
}

TEST(RunTable, TakesWhatAMixtureLacksFromThePublishedModel) {
  const auto qwen = read_model("a,48,2048,32,gb200,8,1,64,4096,1,Qwen3_30B_a3B (tokendrop),,128,8,,,MXFP8");
  ASSERT_TRUE(qwen.ok()) << qwen.error().message;
  EXPECT_TRUE(config_has(qwen, "\"intermediate_size\":768"));
  EXPECT_TRUE(config_has(qwen, "\"num_key_value_heads\":4"));
  EXPECT_TRUE(config_has(qwen, "\"head_dim\":128"));
  EXPECT_EQ(qwen->recipe.precision, recipe::Precision::fp8);
  const auto proxy = read_model("a,4,7168,128,b200,8,1,16,4096,1,deepseekv3,18432,256,8,128,,bf16");
  ASSERT_TRUE(proxy.ok()) << proxy.error().message;
  EXPECT_TRUE(config_has(proxy, "\"model_type\":\"deepseek_v3\""));
  EXPECT_TRUE(config_has(proxy, "\"first_k_dense_replace\":1"));
  EXPECT_TRUE(config_has(proxy, "\"kv_lora_rank\":512"));
  const auto unknown = read_model("a,4,512,8,b200,8,1,16,4096,1,somebody's,,64,8,,,bf16");
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.error().message, "moe_ffn is missing, and no published model is known as 'somebody's'");
}

TEST(RunTable, ReadsLayersWithoutAGateExactly) {
  const auto run = read_model("a,32,6144,48,gb200,8,1,64,4096,1,nemotron4-15b,24576,,,8,0,nvfp4");
  ASSERT_TRUE(run.ok()) << run.error().message;
  EXPECT_TRUE(config_has(run, "\"hidden_act\":\"relu2\""));
  EXPECT_TRUE(config_has(run, "\"intermediate_size\":24576"));
  EXPECT_EQ(run->recipe.precision, recipe::Precision::nvfp4);
}

TEST(RunTable, RefusesFilesThatAreNoTables) {
  EXPECT_EQ(read_run_table("", "x.csv").error().message, "x.csv: the file is empty");
  EXPECT_EQ(read_run_table("{\"a\": 1}", "x.json").error().message,
            "x.json: expected records or rows of training runs");
  EXPECT_EQ(read_run_table("a,b\n1\n", "x.csv").error().message, "x.csv:2: expected 2 values, found 1");
}

// Whatever bytes a file has, it is read or refused.
TEST(RunTable, SurvivesTruncatedAndGarbledFiles) {
  const std::string texts[] = {
      std::string(kHeader) + "a,24,1024,16,h100,16,2,4,2,1,64,2048,1.5,40\n",
      R"({"records": [{"id": "r", "model": {"layers": 2}, "hardware": {"gpu": "A100"}, "parallel": {"tp": 2}}]})",
      R"({"common": {"gpu": "A100"}, "columns": ["layers", "tp"], "rows": [[2, 1]]})",
      R"({"id": "f", "gpu": "H100", "world": 8, "flags": {"num-layers": 12, "bf16": true}})"};
  Random random(1);
  for (const std::string& text : texts)
    for (int round = 0; round < 300; ++round) {
      std::string garbled = text.substr(0, random.below(text.size() + 1));
      for (int flips = round % 4; flips > 0 && !garbled.empty(); --flips)
        garbled[random.below(garbled.size())] = static_cast<char>(random.below(256));
      for (const char* path : {"x.csv", "x.json", "x.jsonl"})
        if (const auto rows = read_run_table(garbled, path); rows.ok())
          for (const RunRow& row : *rows) (void)run_of(row);
    }
}

}  // namespace
}  // namespace weft::runs
