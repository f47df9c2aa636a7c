// `weft improve` and EXPLAIN (FORMAT megatron ..): configurations in and out.
#include <gtest/gtest.h>

#include <fstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "temporary_folder.h"
#include "weft/app/command/improve.h"

namespace weft::command {

using namespace session;
namespace {

using Json = nlohmann::json;

// Four identical layers, small enough that a step is estimated at once.
constexpr std::string_view kMaps = R"(
CREATE LAYER two_maps(x[b, d]) (b = 8, d = 256, f = 1024)
  PARAMETER w1[d, f] INIT normal(0, 0.02), w2[f, d] INIT normal(0, 0.02)
AS WITH
  a AS (SELECT relu(sum(x * w1)) FROM x, w1 GROUP BY b, f),
  y AS (SELECT sum(a * w2) FROM a, w2 GROUP BY b, d)
SELECT x + y FROM x, y;
CREATE MODEL maps (b = 64, d = 256, c = 16, layers = 4)
  INPUT pixels[b, d], label[b] OF int32
  PARAMETER head[d, c] INIT normal(0, 0.02)
AS WITH
  x      AS (SELECT relu(pixels) FROM pixels),
  REPEAT layers TIMES x AS (SELECT * FROM two_maps(x)),
  logits AS (SELECT sum(x * head) FROM x, head GROUP BY b, c)
SELECT mean(cross_entropy(logits, label) OVER (PARTITION BY b)) AS loss FROM logits, label;
)";

const std::string& maps_file() {
  static const TemporaryFolder folder;
  static const std::string file = folder / "maps.weft";
  static const bool written = static_cast<bool>(std::ofstream(file) << kMaps);
  EXPECT_TRUE(written);
  return file;
}

// Enough layers to be recognized as identical.
const std::string& eight_maps_file() {
  static const TemporaryFolder folder;
  static const std::string file = folder / "maps.weft";
  std::string text(kMaps);
  constexpr std::string_view kFour = "layers = 4";
  text.replace(text.find(kFour), kFour.size(), "layers = 8");
  static const bool written = static_cast<bool>(std::ofstream(file) << text);
  EXPECT_TRUE(written);
  return file;
}

Improve asked(std::string flags) {
  Improve request;
  request.megatron = std::move(flags);
  request.model = maps_file();
  request.stack = "weft";  // others have a host that bounds small models
  request.on = "pod";
  request.format = Format::json;
  request.seconds = 1e-3;  // only the estimate of today's configuration is needed
  return request;
}

Json answered(const Improve& request) {
  const Reply reply = run(request);
  EXPECT_EQ(reply.exit_code, ExitCode::ok) << reply.complaint;
  const Json json = Json::parse(reply.output, nullptr, false);
  EXPECT_FALSE(json.is_discarded()) << reply.output;
  return json;
}

TEST(Improve, EstimatesTodaysConfiguration) {
  const Json json =
      answered(asked("--tensor-model-parallel-size 2 --micro-batch-size 4 --global-batch-size 64"));
  EXPECT_EQ(json["today"]["plan"], "node=4: slice b; gpu_a=4: slice b; gpu_b=2: slice d, f");
  EXPECT_GT(json["today"]["step_seconds"].get<double>(), 0);
  EXPECT_TRUE(json["today"]["fits"].get<bool>());
  EXPECT_EQ(json["language"], "megatron");
}

// With the software of a stack, EXPLAIN estimates a plan without stages or micro-batches as `weft improve` does.
TEST(Improve, EstimatesAPlanAsExplainDoes) {
  Improve request = asked("--micro-batch-size 2 --global-batch-size 64");
  request.stack = "megatron";
  const Json today = answered(request)["today"];
  Session session;
  ASSERT_EQ(session.execute(std::string(kMaps)).exit_code, ExitCode::ok);
  const Reply reply =
      session.execute(fmt::format("EXPLAIN (FORMAT json) TRAIN maps ON pod WITH (b = 64, optimizer = adamw, "
                                  "stack = 'megatron', distribution = '{}')",
                                  today["plan"].get<std::string>()));
  ASSERT_EQ(reply.exit_code, ExitCode::ok) << reply.complaint;
  const Json shown = Json::parse(reply.output);
  EXPECT_NEAR(shown["step_seconds"].get<double>(), today["step_seconds"].get<double>(),
              1e-9 * today["step_seconds"].get<double>());
  EXPECT_EQ(shown["memory_per_rank_bytes"], today["memory_per_rank_bytes"]);
}

// The reported parts of a step add up to the whole.
TEST(Improve, PartsAddUp) {
  const Json today = answered(
      asked("--pipeline-model-parallel-size 2 --micro-batch-size 1 --global-batch-size 64"))["today"];
  const double sum = today["computing_seconds"].get<double>() + today["waiting_seconds"].get<double>() +
                     today["bubble_seconds"].get<double>() + today["update_seconds"].get<double>();
  EXPECT_NEAR(sum, today["step_seconds"].get<double>(), 0.02 * sum);
  EXPECT_GT(today["bubble_seconds"].get<double>(), 0);
}

// Recomputation costs time and saves memory; for some layers less of both than for all.
TEST(Improve, EstimatesRecomputation) {
  const auto priced = [](std::string_view more) {
    Improve request = asked(fmt::format(
        "--pipeline-model-parallel-size 2 --micro-batch-size 1024 --global-batch-size 131072 {}", more));
    request.model = eight_maps_file();
    const Json today = answered(request)["today"];
    return std::pair(today["step_seconds"].get<double>(), today["memory"]["activations"].get<double>());
  };
  const auto none = priced(""),
             some = priced("--recompute-granularity full --recompute-method block --recompute-num-layers 2"),
             all = priced("--recompute-granularity full --recompute-method uniform"),
             more = priced("--recompute-granularity full --recompute-method block --recompute-num-layers 7");
  EXPECT_GT(all.first, 1.1 * none.first);
  EXPECT_LT(all.second, 0.7 * none.second);
  EXPECT_NEAR(some.first, (none.first + all.first) / 2, 1e-9 * all.first);
  EXPECT_NEAR(some.second, (none.second + all.second) / 2, 1);
  EXPECT_EQ(more, all);
}

TEST(Improve, EstimatesOptimizerStatesOnTheHost) {
  const std::string flags = "--micro-batch-size 1 --global-batch-size 64";
  const Json here = answered(asked(flags))["today"],
             there = answered(asked(flags + " --optimizer-cpu-offload"))["today"];
  EXPECT_GT(here["memory"]["optimizer"].get<double>(), 0);
  EXPECT_EQ(there["memory"]["optimizer"].get<double>(), 0);
  EXPECT_GT(there["step_seconds"].get<double>(), here["step_seconds"].get<double>());
  EXPECT_NE(there["recipe"].get<std::string>().find("optimizer on the host"), std::string::npos);
}

// Gradient reduction overlaps with computation only where the flags allow it.
TEST(Improve, EstimatesOverlappedGradientReduction) {
  const std::string flags = "--micro-batch-size 2 --global-batch-size 64";
  const auto by_megatron = [](const std::string& given) {
    Improve request = asked(given);
    request.stack = "megatron";
    return answered(request)["today"];
  };
  const Json apart = by_megatron(flags), beside = by_megatron(flags + " --overlap-grad-reduce");
  EXPECT_EQ(apart["plan"], beside["plan"]);
  EXPECT_LT(beside["step_seconds"].get<double>(), apart["step_seconds"].get<double>());
}

TEST(Improve, FindsAFasterConfiguration) {
  // Small maps sliced eight ways, one row at a time: all of the time is communication.
  Improve request = asked("--tensor-model-parallel-size 8 --micro-batch-size 1 --global-batch-size 64");
  request.seconds = 0;
  const Json json = answered(request);
  ASSERT_FALSE(json["better"].is_null()) << json.dump(1);
  EXPECT_GT(json["better"]["speedup"].get<double>(), 1.5);
  EXPECT_FALSE(json["better"]["changes"].empty());
  EXPECT_NE(json["better"]["configuration"].get<std::string>().find("--global-batch-size 64"),
            std::string::npos);
  // The reported configuration is estimated at the reported time.
  Improve again = asked(json["better"]["configuration"].get<std::string>());
  EXPECT_DOUBLE_EQ(answered(again)["today"]["step_seconds"].get<double>(),
                   json["better"]["step_seconds"].get<double>());
}

TEST(Improve, ReportsContradictoryFlags) {
  const auto refused = [](Improve request, std::string_view expected) {
    request.format = Format::text;
    const Reply reply = run(request);
    EXPECT_EQ(reply.exit_code, ExitCode::user_error);
    EXPECT_EQ(reply.complaint, expected);
  };
  refused(asked("--micro-batch-size 1 --tensor-model-parallel-size 3 --global-batch-size 64"),
          "error 1:22: tensor x pipeline x context does not divide the number of devices: 3 x 1 x 1 and 32\n"
          "  --micro-batch-size 1 --tensor-model-parallel-size 3 --global-batch-size 64\n"
          "                       ^^^^^^^^^^^^^^^^^^^^^^^^^^^^\n  the nearest that divide 32: 2 and 4\n");
  refused(asked("--micro-batch-size 1 --bf16 --global-batch-size 64 --fp16"),
          "error 1:22: --bf16 and --fp16 are mutually exclusive\n  --micro-batch-size 1 --bf16 "
          "--global-batch-size 64 --fp16\n                       ^^^^^^\n");
  Improve other = asked("--micro-batch-size 1 --num-layers 8 --global-batch-size 64");
  other.model = "char_gpt";
  refused(other,
          "error 1:22: the configuration and the model char_gpt differ: layers of 8 and 6\n"
          "  --micro-batch-size 1 --num-layers 8 --global-batch-size 64\n"
          "                       ^^^^^^^^^^^^\n"
          "  give the model that the configuration trains\n");
  refused(asked("--tensor-model-parallel-size 2"),
          "error: the configuration does not give the batch size per step\n  --batch 1024\n");
  Improve none = asked("");
  refused(none,
          "error: expected one configuration, found 0\n"
          "  --megatron 'FLAGS', --deepspeed ds_config.json, --torchtitan job.toml, --nemo, --bridge, "
          "--accelerate or "
          "--maxtext FILE\n");
  Improve twice = asked("--global-batch-size 64 --micro-batch-size 1");
  twice.batch = 128;
  refused(twice, "error: --batch and the configuration differ: a batch of 128 and 64\n  give it only once\n");
}

TEST(Improve, ReportsWhatDoesNotFit) {
  const Json today = answered(asked("--micro-batch-size 16777216 --global-batch-size 536870912"))["today"];
  EXPECT_FALSE(today["fits"].get<bool>());
  EXPECT_EQ(today["bound_by"].get<std::string>().substr(0, 8), "memory: ");
}

// The plan in the syntax of each launcher, parsed back and estimated: the same time.
TEST(ExplainRecipe, ParsesBackToTheSameEstimate) {
  const TemporaryFolder folder;
  const auto explained = [](std::string_view form, std::string_view distribution) {
    Session session;
    session.format = Format::json;
    const Reply reply = session.execute(fmt::format(
        "{}EXPLAIN (FORMAT {}) TRAIN maps ON pod WITH (b = 64, precision = bf16, distribution = '{}')", kMaps,
        form, distribution));
    EXPECT_EQ(reply.exit_code, ExitCode::ok) << reply.complaint;
    // The answers to the two CREATE statements come first.
    const std::string& text = reply.output;
    const std::size_t last = text.rfind('\n', text.size() - 2);
    return Json::parse(text.substr(last + 1), nullptr, false);
  };
  struct Case {
    std::string_view form, distribution;
    bool whole;  // the format can express all of it
  };
  const Case cases[] = {
      {"megatron", "node=4: slice b; gpu_a=4: slice b; gpu_b=2: slice d, f", true},
      {"megatron", "node=4: stage; gpu=8: slice b, shard optimizer; micro=4; schedule one_f_one_b", true},
      {"megatron", "node=4: stage; gpu=8: slice b; micro=4; schedule zb_h1", false},
      {"deepspeed", "node=4: slice b, shard parameters; gpu=8: slice b, shard parameters", true},
      {"torchtitan_toml", "node=4: slice b; gpu=8: slice b, shard parameters", true},
      {"megatron",
       "node=4: stage; gpu=8: slice b, shard optimizer; micro=4; recompute selective; offload optimizer; "
       "schedule one_f_one_b",
       true},
      {"megatron", "node=4: slice b; gpu=8: slice b; recompute layers", true},
      {"megatron", "node=4: slice b; gpu=8: slice b; micro=2; recompute two_maps.0", false},
      {"deepspeed", "node=4: slice b; gpu=8: slice b; micro=2; recompute selective", false},
      {"deepspeed",
       "node=4: slice b, shard optimizer; gpu=8: slice b, shard optimizer; micro=2; recompute layers; "
       "offload "
       "optimizer",
       false},
      {"torchtitan_toml", "node=4: slice b; gpu=8: slice b, shard parameters; recompute layers", true},
      {"torchtitan_toml", "node=4: slice b; gpu=8: slice b, shard parameters; recompute selective", true},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(fmt::format("{}: {}", one.form, one.distribution));
    const Json json = explained(one.form, one.distribution);
    ASSERT_FALSE(json.is_discarded());
    if (one.whole) EXPECT_EQ(json["configuration_plan"], one.distribution);
    EXPECT_EQ(one.whole, json["lost"].empty()) << json["lost"];
    EXPECT_EQ(json["plan"], one.distribution);
    Improve request = asked("");
    const std::string text = json["configuration"].get<std::string>(),
                      file = folder.path() + "/configuration";
    if (one.form == "megatron") {
      request.megatron = text;
    } else {
      std::ofstream(file) << text;
      (one.form == "deepspeed" ? request.deepspeed : request.torchtitan) = file;
    }
    const Reply reply = run(request);
    if (reply.complaint.find("without toml++") != std::string::npos) continue;
    ASSERT_EQ(reply.exit_code, ExitCode::ok) << reply.complaint << text;
    const Json today = Json::parse(reply.output)["today"];
    EXPECT_EQ(today["plan"], json["configuration_plan"]);
    EXPECT_DOUBLE_EQ(today["step_seconds"].get<double>(), json["configuration_seconds"].get<double>());
  }
}

}  // namespace
}  // namespace weft::command
