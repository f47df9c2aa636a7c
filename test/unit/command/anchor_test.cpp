// `weft improve --measured` and `weft validate --anchor`: a measured step moves the predictions of others.
#include <gtest/gtest.h>

#include <fstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "temporary_folder.h"
#include "weft/app/command/improve.h"
#include "weft/app/command/validate.h"
#include "weft/base/file.h"

namespace weft::command {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kConfig = R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"],
  "hidden_size": 1024, "num_hidden_layers": 8, "num_attention_heads": 8, "intermediate_size": 4096,
  "max_position_embeddings": 1024, "vocab_size": 32000})";

Improve measured(const TemporaryFolder& folder, std::string values) {
  Improve request;
  request.model = folder / "small.json";
  std::ofstream(request.model) << kConfig;
  request.megatron =
      "--tensor-model-parallel-size 2 --micro-batch-size 4 --global-batch-size 128 --seq-length 1024 --bf16";
  request.on = "pod";
  request.measured = std::move(values);
  request.format = session::Format::json;
  request.seconds = 1e-3;  // only the estimate of today's configuration is needed
  return request;
}

Json answer(const Improve& request) {
  const session::Reply reply = run(request);
  EXPECT_EQ(reply.exit_code, session::ExitCode::ok) << reply.complaint;
  return Json::parse(reply.output, nullptr, false);
}

TEST(Measured, MovesThePredictionTowardsTheStep) {
  const TemporaryFolder folder;
  const double before = answer(measured(folder, ""))["today"]["step_seconds"].get<double>();
  Improve request = measured(folder, fmt::format("step={}s", 1.2 * before));
  request.save_stack = folder / "ours.weft";
  const Json json = answer(request);
  const double after = json["today"]["step_seconds"].get<double>();
  EXPECT_GT(after, 1.05 * before);
  EXPECT_LE(after, 1.2 * before);
  EXPECT_DOUBLE_EQ(json["anchor"]["before"]["step_seconds"].get<double>(), before);
  EXPECT_DOUBLE_EQ(json["anchor"]["after"]["step_seconds"].get<double>(), after);
  const std::string saved = read_file(request.save_stack, 1 << 16).value();
  EXPECT_EQ(saved, json["anchor"]["stack"].get<std::string>());
  EXPECT_TRUE(saved.starts_with("CREATE STACK megatron_anchored ")) << saved;
}

TEST(Measured, ReadsALog) {
  const TemporaryFolder folder;
  const double before = answer(measured(folder, ""))["today"]["step_seconds"].get<double>();
  Improve request = measured(folder, folder / "train.log");
  std::ofstream(request.measured) << fmt::format("elapsed time per iteration (ms): {}\n", 900 * before);
  EXPECT_NEAR(answer(request)["anchor"]["measured"]["step_seconds"].get<double>(), 0.9 * before,
              1e-6 * before);
}

TEST(Measured, RefusesWhatDoesNotBelong) {
  const TemporaryFolder folder;
  const auto complaint = [&](std::string values) {
    return run(measured(folder, std::move(values))).complaint;
  };
  EXPECT_EQ(complaint("stp=1s").substr(0, 24), "error: --measured: expec");
  EXPECT_NE(complaint("step=1000s").find("must be within 0.3 to 3 times the predicted"), std::string::npos);
  Improve request = measured(folder, "");
  request.save_stack = folder / "ours.weft";
  EXPECT_EQ(run(request).complaint,
            "error: --save-stack needs a measured step\n  --measured 'step=1.31s, memory=61GiB'\n");
}

// A table whose runs all take 1.5 times as long as predicted: its smallest run tells that of the others.
TEST(ValidateAnchor, PredictsTheRestOfASeriesBetter) {
  const TemporaryFolder folder;
  Validate request;
  request.files = {folder / "runs.csv"};
  request.half = Half::both;
  request.format = session::Format::json;
  const auto write = [&](const std::vector<double>& seconds) {
    std::ofstream file(request.files.front());
    file << "id,model,layers,hidden,heads,gpu,gpus,tp,pp,dp,zero,mbs,gbs,seq,stack,step_s\n";
    constexpr std::string_view kRows[] = {"one,gpt,4,1024,8,h100,8,1,1,8,0,4,64,1024,nanotron",
                                          "two,gpt,4,1024,8,h100,16,2,1,8,0,4,64,1024,nanotron",
                                          "four,gpt,4,1024,8,h100,32,2,1,16,0,4,64,1024,nanotron"};
    for (std::size_t row = 0; row < 3; ++row) file << kRows[row] << "," << seconds[row] << "\n";
  };
  write({1, 1, 1});
  std::vector<double> slower(3);
  const Json first = Json::parse(run(request).output)["files"][0];
  EXPECT_FALSE(first.contains("anchored"));
  const std::vector<std::string> ids = {"one", "two", "four"};
  for (const Json& one : first["runs"])
    slower[static_cast<std::size_t>(std::ranges::find(ids, one["id"].get<std::string>()) - ids.begin())] =
        1.5 * one["predicted_seconds"].get<double>();
  write(slower);
  request.anchor = true;
  const Json anchored = Json::parse(run(request).output)["files"][0]["anchored"];
  EXPECT_EQ(anchored["series"], 1);
  ASSERT_EQ(anchored["runs"].size(), 2u) << anchored;
  for (const Json& one : anchored["runs"]) EXPECT_EQ(one["anchor"], "one");
  EXPECT_NEAR(anchored["time"]["mean_error_without"].get<double>(), 1.0 / 3, 1e-4);
  EXPECT_LT(anchored["time"]["mean_error_with"].get<double>(), 0.2);
}

}  // namespace
}  // namespace weft::command
