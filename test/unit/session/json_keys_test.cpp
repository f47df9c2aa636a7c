// docs/json.md and the JSON of EXPLAIN have the same keys.
#include <algorithm>
#include <regex>
#include <set>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "session_case.h"
#include "weft/base/file.h"

namespace weft::session {
namespace {

using Json = nlohmann::json;

std::set<std::string> documented() {
  const std::string page = read_file(WEFT_SOURCE_DIR "/docs/json.md", 1 << 20).value();
  const std::size_t begin = page.find("## EXPLAIN"), end = page.find("## weft improve");
  const std::string text = page.substr(begin, end - begin);
  std::set<std::string> keys;
  const std::regex row("\n\\| (`[^|]*`) \\|"), key("`([^`]+)`");
  for (std::sregex_iterator rows(text.begin(), text.end(), row), none; rows != none; ++rows) {
    const std::string cell = (*rows)[1];
    for (std::sregex_iterator found(cell.begin(), cell.end(), key); found != none; ++found)
      keys.insert((*found)[1]);
  }
  return keys;
}

// "pipeline_stages[].memory_bytes": the paths of leaves. An array of numbers or strings is a leaf,
// and the parts of a step have its keys.
void add_keys(const Json& json, const std::string& path, std::set<std::string>& keys) {
  if (json.is_object() && !json.empty()) {
    for (const auto& [name, value] : json.items())
      add_keys(value, path.empty() ? name : path + "." + name, keys);
  } else if (json.is_array() && !json.empty() && json.front().is_object()) {
    if (path.ends_with(".steps")) {
      keys.insert(path);
      for (const Json& step : json) add_keys(step, path.substr(0, path.size() - 6), keys);
      return;
    }
    for (const Json& element : json) add_keys(element, path + "[]", keys);
  } else if (!(json.is_object() || json.is_array()) || path == "hints" || path.ends_with("operators") ||
             path.ends_with("replaced") || path.ends_with("tensors")) {
    keys.insert(path);
  }
}

bool is_documented(const std::string& key, const std::set<std::string>& keys) {
  if (keys.contains(key)) return true;
  for (std::size_t dot = key.rfind('.'); dot != std::string::npos && dot > 0; dot = key.rfind('.', dot - 1))
    if (keys.contains(key.substr(0, dot) + ".*")) return true;
  return false;
}

std::set<std::string> written() {
  std::set<std::string> keys;
  for (const std::string_view statement : {
           "EXPLAIN ANALYZE TRAIN digits_mlp STEPS 1 WITH (threads = 1, keep_measurements = false, rules = "
           "true)",
           "EXPLAIN INFER gpt2 ON h100 WITH (layers = 2)",
           "EXPLAIN INFER digits_mlp WITH (precision = f64)",
           "EXPLAIN (TRAIL) TRAIN digits_mlp ON pod WITH (b = 4096)",
           "EXPLAIN (TRAIL) TRAIN gpt2 ON pod WITH (b = 32, layers = 2, v = 5000, prove = false, "
           "planning_seconds = "
           "2)",
           "EXPLAIN TRAIN digits_mlp ON LOCAL 2 WITH (b = 32, distribution = 'rank=2: slice b', "
           "codecs = 'gradients: int8 always', disabled_stages = 'bucket')",
           "EXPLAIN TRAIN digits_mlp ON LOCAL 2 WITH (b = 32, distribution = 'rank=2: slice b', sync_every = "
           "8)",
           "EXPLAIN TRAIN digits_mlp ON LOCAL 3 WITH (b = 12, f = 200, distribution = 'rank=3: slice b', "
           "all_reduce_window = '32 KiB', gradient_delay = 1, prove = false)",
           "EXPLAIN ANALYZE TRAIN digits_mlp ON LOCAL 2 STEPS 2 WITH (b = 32, threads = 1, transport = "
           "inproc, "
           "distribution = 'rank=2: slice b')",
           "EXPLAIN ANALYZE TRAIN digits_mlp ON LOCAL 2 STEPS 2 WITH (b = 32, threads = 1, transport = "
           "inproc, "
           "distribution = 'stage=2: stage; micro=4', keep_measurements = false)",
           "EXPLAIN TRAIN digits_mlp ON LOCAL 2 WITH (simpler_within = 1, prove = false)",
           "EXPLAIN TRAIN digits_mlp ON pod WITH (b = 4096, prove = false, "
           "distribution = 'node=4: slice b, micro-batches 3:1:2:2; gpu=8: slice b; micro=2')",
       }) {
    Session session;
    session.format = Format::json;
    session.with_report = true;
    const Reply reply = session.execute(statement);
    EXPECT_EQ(reply.exit_code, ExitCode::ok) << statement << "\n" << reply.complaint;
    const Json json = Json::parse(reply.output, nullptr, false);
    EXPECT_FALSE(json.is_discarded()) << reply.output;
    if (json.is_discarded()) continue;
    EXPECT_EQ(json.at("schema"), 1);
    add_keys(json, {}, keys);
  }
  return keys;
}

TEST(JsonKeys, DocumentedAndWrittenKeysAgree) {
  const std::set<std::string> in_docs = documented(), found = written();
  ASSERT_GT(in_docs.size(), 100u);
  for (const std::string& key : found)
    EXPECT_TRUE(is_documented(key, in_docs)) << "docs/json.md lacks " << key;
  // Keys that appear only with a GPU, a job, a mixed cluster, summation servers, profitable rules
  // or a limit.
  const std::regex rare(
      "measured\\.(urgency|first_answer)\\.\\*|hosts|network\\..*|(parameter_)?servers|slices|scatter_gather_"
      "sends|spilled_bytes|seconds_of_"
      "spilled|"
      "within_limit|rules.*|communication_rules.*|pipeline_stages\\[\\]\\.(device|mesh)|replicas\\[\\]\\."
      "device|"
      "by_definition.*|credit|all_reduce_window|(gradient_)?delay|measured\\.(median_error_after|step_"
      "seconds_predicted_after)|"
      "alternatives\\[\\]\\.(micro_batches|schedule|chunks|bubble_rate|bubble\\.\\*|update_seconds|recompute|"
      "host_bytes)|stages\\[\\]\\.(off|tried)");
  for (const std::string& key : in_docs) {
    if (std::regex_match(key, rare) || found.contains(key)) continue;
    const bool of_names = key.ends_with(".*") && std::ranges::any_of(found, [&](const std::string& other) {
                            return other.starts_with(key.substr(0, key.size() - 1));
                          });
    EXPECT_TRUE(of_names) << "no statement writes " << key << ", which docs/json.md has";
  }
}

}  // namespace
}  // namespace weft::session
