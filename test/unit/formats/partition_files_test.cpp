// Published partitioning problems: how files are read, what is rejected, and the known optima.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "weft/formats/placement_json.h"
#include "weft/formats/profile_text.h"
#include "weft/formats/stage_costs_json.h"
#include "weft/parallel/partition/steady.h"

namespace weft::formats {
namespace {

const std::filesystem::path kCorpus = WEFT_SOURCE_DIR "/../shared/corpus";

std::string slurp(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

Json json_of(const std::filesystem::path& path) { return Json::parse(slurp(path)); }

Result<partition::Placement> placement_of(const std::string& text) {
  WEFT_TRY(json, parse_json(text));
  const JsonNode top(json);
  return read_placement(top);
}

Result<partition::Hybrid> stage_costs_of(const std::string& text) {
  WEFT_TRY(json, parse_json(text));
  const JsonNode top(json);
  return read_stage_costs(top, json);
}

template <class Read>
std::string refusal(Read read, const std::string& text) {
  const auto result = read(text);
  return result.ok() ? "read" : result.error().message;
}

const std::string kPlacement =
    R"({"maxSizePerFPGA": 8, "maxFPGAs": 2, "maxCPUs": 1, "nodes": [)"
    R"({"id": 7, "supportedOnFpga": 1, "cpuLatency": 2, "fpgaLatency": 1, "isBackwardNode": false, "colorClass": 3},)"
    R"({"id": 9, "supportedOnFpga": 0, "cpuLatency": 2, "fpgaLatency": 1, "isBackwardNode": 1, "colorClass": 3, "size": 4}],)"
    R"("edges": [{"sourceId": 7, "destId": 9, "cost": 0.5}]})";

const std::string kStageCosts =
    R"({"maxDevices": 4, "maxMemoryPerDevice": 100, "bandwidth": 10, "mbsInBatch": 2, "nodes": [)"
    R"({"id": 1, "TMPCs": {"1": [{"id": "a", "timePerSample": 3, "parameterSize": 1, "memoryUsageA": 1,)"
    R"( "memoryUsageB": 1, "syncTimeFw": {}, "syncTimeBw": {"2": 5}}]}},)"
    R"({"id": 2, "TMPCs": {"1": [{"id": "a", "timePerSample": 3, "parameterSize": 1, "memoryUsageA": 1,)"
    R"( "memoryUsageB": 1, "syncTimeFw": {"1": 6}, "syncTimeBw": {}}]}}],)"
    R"("edges": [{"sourceId": 1, "destId": 2, "communicationCost": 7}]})";

const std::string kProfile =
    "node1 -- Input0 -- forward_compute_time=0, backward_compute_time=0, activation_size=4, "
    "parameter_size=0\n"
    "node2 -- LSTM(8, 8) -- forward_compute_time=1.5, backward_compute_time=2, activation_size=[3.0; 4.0], "
    "parameter_size=6 -- stage_id=1\n"
    "\tnode1 -- node2\n";

std::string with(std::string text, std::string_view what, std::string_view instead) {
  return text.replace(text.find(what), what.size(), instead);
}

TEST(PartitionFiles, ReadsAPlacement) {
  const auto placement = placement_of(kPlacement);
  ASSERT_TRUE(placement.ok()) << placement.error().message;
  EXPECT_EQ(placement->nodes.size(), 2u);
  EXPECT_EQ(placement->nodes[0].class_of, placement->nodes[1].class_of);
  EXPECT_TRUE(placement->nodes[1].backward);
  EXPECT_FALSE(placement->nodes[1].accelerated);
  EXPECT_EQ(placement->nodes[0].send, 0.5);
}

TEST(PartitionFiles, ReportsTheLocationOfErrorsInAPlacement) {
  EXPECT_EQ(refusal(placement_of, with(kPlacement, "\"destId\": 9", "\"destId\": 8")),
            "edges[0].destId: expected the id of a node, found 8");
  EXPECT_EQ(refusal(placement_of, with(kPlacement, "\"id\": 9", "\"id\": 7")),
            "nodes[1]: expected a unique id, found 7 twice");
  EXPECT_EQ(refusal(placement_of, with(kPlacement, "\"cpuLatency\": 2", "\"cpuLatency\": -2")),
            "nodes[0].cpuLatency: expected a number of at least 0, found -2");
  EXPECT_EQ(refusal(placement_of, with(kPlacement, "\"maxFPGAs\": 2", "\"maxFPGAs\": 1e9")),
            "maxFPGAs: expected 0 to 10000, found 1000000000.0");
}

TEST(PartitionFiles, ReadsStageCosts) {
  const auto hybrid = stage_costs_of(kStageCosts);
  ASSERT_TRUE(hybrid.ok()) << hybrid.error().message;
  EXPECT_EQ(hybrid->nodes[0].degrees[0].ways[0].to, std::vector<double>{5});
  EXPECT_EQ(hybrid->nodes[1].degrees[0].ways[0].from, std::vector<double>{6});
  // Two replicas of both: 6 / 2 + 4 * 1/2 * 2 / 2 / 10.
  const auto answer = partition::cut_hybrid(*hybrid);
  ASSERT_TRUE(answer.ok());
  EXPECT_DOUBLE_EQ(answer->cost, 3.2);
}

TEST(PartitionFiles, ReportsTheLocationOfErrorsInStageCosts) {
  EXPECT_EQ(refusal(stage_costs_of, with(kStageCosts, "{\"2\": 5}", "{}")),
            "nodes[0].TMPCs.1[0].syncTimeBw: expected 2, found none");
  EXPECT_EQ(refusal(stage_costs_of, with(kStageCosts, "{\"1\": [", "{\"one\": [")),
            "nodes[0].TMPCs: expected a number of devices, found 'one'");
}

TEST(PartitionFiles, ReadsAProfile) {
  const auto profile = read_profile(kProfile);
  ASSERT_TRUE(profile.ok()) << profile.error().message;
  EXPECT_EQ(profile->nodes[1].description, "LSTM(8, 8)");
  EXPECT_EQ(profile->nodes[1].activations, 7);
  EXPECT_EQ(profile->edges.size(), 1u);
  EXPECT_EQ(partition::without_inputs(*profile).nodes.size(), 1u);
}

TEST(PartitionFiles, ReportsTheLineOfErrorsInAProfile) {
  EXPECT_EQ(refusal(read_profile, with(kProfile, "\tnode1", "\tnode3")),
            "line 3: expected a node that has a line, found 'node3'");
  EXPECT_EQ(refusal(read_profile, with(kProfile, "parameter_size=6", "parameter_size=x")),
            "line 2: expected a number that is not negative, found 'x'");
  EXPECT_EQ(refusal(read_profile, with(kProfile, "node2 -- L", "node1 -- L")),
            "line 2: expected a node of its own, found 'node1'");
  EXPECT_EQ(refusal(read_profile, ""), "expected a node, found none");
}

// Truncated or with flipped bits, a file is read or rejected.
TEST(PartitionFiles, SurvivesBrokenFiles) {
  const auto try_all = [](const std::string& text) {
    for (const char wrong : {'\0', '9', '}', '\n', '-'})
      for (std::size_t at = 0; at < text.size(); ++at) {
        std::string broken = text;
        broken[at] = wrong;
        for (const std::string& one : {broken, text.substr(0, at)}) {
          if (auto read = placement_of(one); read.ok()) (void)partition::place(*read);
          if (auto read = stage_costs_of(one); read.ok()) (void)partition::cut_hybrid(*read);
          if (auto read = read_profile(one); read.ok()) (void)partition::cut_steady(*read, {{2, 1e9}});
        }
      }
  };
  for (const std::string& text : {kPlacement, kStageCosts, kProfile}) try_all(text);
}

TEST(PartitionFiles, FindsTheOptimaOfPlacements) {
  const std::filesystem::path folder = kCorpus / "dnn-placement";
  if (!std::filesystem::exists(folder)) GTEST_SKIP();
  for (const Json& row : json_of(folder / "max_load.json")) {
    const std::string graph = row["graph"];
    // The operator graphs of GNMT and BERT take long without optimization.
    if (graph.find("gnmt") != std::string::npos || graph.starts_with("op_bert")) continue;
    const auto placement = placement_of(slurp(folder / graph));
    ASSERT_TRUE(placement.ok()) << placement.error().message;
    const auto answer = partition::place(*placement);
    ASSERT_TRUE(answer.ok()) << graph;
    EXPECT_NEAR(answer->cost, row["optimal_contiguous_max_load"], 1e-5 * answer->cost) << graph;
    const auto judged = partition::judge(*placement, answer->stages);
    ASSERT_TRUE(judged.ok()) << judged.error().message;
    EXPECT_NEAR(*judged, answer->cost, 1e-9 * answer->cost);
  }
}

TEST(PartitionFiles, NoWorseThanPipeDream) {
  const std::filesystem::path folder = kCorpus / "pipedream";
  if (!std::filesystem::exists(folder)) GTEST_SKIP();
  const Json reference = json_of(folder / "optimizer_reference.json");
  for (const Json& row : reference["results"]) {
    const std::string model = row["model"];
    std::vector<partition::Level> levels;
    for (std::size_t i = 0; i < row["num_machines"].size(); ++i)
      levels.push_back({row["num_machines"][i], row["bandwidth_Bps"][i]});
    if (model == "gnmt" && levels.size() > 1) continue;  // 562 ideals in two levels take a second
    const auto read = read_profile(slurp(folder / "profiles" / (model + ".graph.txt")));
    ASSERT_TRUE(read.ok()) << read.error().message;
    const partition::Profile profile = partition::without_inputs(*read);
    const auto answer = partition::cut_steady(profile, levels, row["straight"]);
    ASSERT_TRUE(answer.ok());
    EXPECT_LE(answer->cost, row["stage_time_s"].get<double>() * (1 + 1e-9)) << model << row["topology"];
    const auto judged = partition::judge(profile, levels, answer->stages);
    ASSERT_TRUE(judged.ok()) << judged.error().message;
    EXPECT_NEAR(*judged, answer->cost, 1e-9);
  }
}

TEST(PartitionFiles, FindsTheOptimaOfPiper) {
  const std::filesystem::path folder = kCorpus / "piper";
  if (!std::filesystem::exists(folder)) GTEST_SKIP();
  auto hybrid = stage_costs_of(slurp(folder / "bert32a100.json"));
  ASSERT_TRUE(hybrid.ok()) << hybrid.error().message;
  const Json reference = json_of(folder / "reference.json");
  for (const Json& row : reference["results"]) {
    // The others take up to one second each.
    if (row["mbsInBatch"] != 512 || row["mem_gib"] != 80.0) continue;
    hybrid->devices = row["k"];
    hybrid->micro_batches = row["mbsInBatch"];
    hybrid->memory = row["mem_gib"].get<double>() * (1 << 30);
    hybrid->bandwidth = row["bandwidth_Bps"];
    const auto answer = partition::cut_hybrid(*hybrid);
    ASSERT_TRUE(answer.ok());
    EXPECT_LE(answer->cost, row["tps"].get<double>() * (1 + 1e-9)) << row["k"];
    const auto judged = partition::judge(*hybrid, answer->stages);
    ASSERT_TRUE(judged.ok()) << judged.error().message;
    EXPECT_NEAR(*judged, answer->cost, 1e-9 * answer->cost);
  }
}

}  // namespace
}  // namespace weft::formats
