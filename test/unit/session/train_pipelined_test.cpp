// TRAIN with micro-batches and stages gives the same results as one rank on the whole batch.
#include <signal.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <map>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "children.h"
#include "session_case.h"
#include "temporary_folder.h"
#include "weft/base/file.h"
#include "weft/formats/safetensors.h"

namespace weft::session {
namespace {

const std::string kDigits = WEFT_SOURCE_DIR "/examples/digits.csv.gz";
const std::string kText = WEFT_SOURCE_DIR "/README.md";

struct Learned {
  double loss = 0;
  std::map<std::string, std::vector<float>> tensors;
};

// Trains in several sessions, each of which loads what the previous one saved, and reads the
// result.
Learned learn_in_parts(const std::string& model, const std::string& on, const std::string& from,
                       const std::vector<int>& parts, const std::string& with,
                       const std::string& transport = "inproc") {
  const TemporaryFolder folder;
  const std::string file = folder / "learned.safetensors";
  Learned learned;
  for (bool first = true; const int steps : parts) {
    Session session;
    if (!std::exchange(first, false)) answer(session, fmt::format("LOAD {} FROM '{}'", model, file));
    const auto said =
        answer(session, fmt::format("TRAIN {} {} FROM '{}' STEPS {} WITH ({}, seed = 3, threads = 1, "
                                    "rules = false, transport = {})",
                                    model, on, from, steps, with, transport));
    answer(session, fmt::format("SAVE {} TO '{}'", model, file));
    learned.loss = said.value("last_loss", 0.0);
  }
  const auto loaded = formats::load(file);
  EXPECT_TRUE(loaded.ok());
  if (!loaded.ok()) return learned;
  for (const formats::TensorEntry& entry : loaded->tensors) {
    if (entry.dtype != plan::DType::f32) continue;
    std::vector<float>& numbers = learned.tensors[std::string(entry.name)];
    numbers.resize(entry.data.size() / sizeof(float));
    std::memcpy(numbers.data(), entry.data.data(), entry.data.size());
  }
  return learned;
}

Learned learn(const std::string& model, const std::string& on, const std::string& from, int steps,
              const std::string& with) {
  return learn_in_parts(model, on, from, {steps}, with);
}

void expect_alike(const Learned& one, const Learned& other, double tolerance) {
  EXPECT_NEAR(one.loss, other.loss, 1e-4 * std::abs(one.loss));
  ASSERT_EQ(one.tensors.size(), other.tensors.size());
  for (const auto& [name, numbers] : one.tensors) {
    const auto found = other.tensors.find(name);
    ASSERT_NE(found, other.tensors.end()) << name;
    ASSERT_EQ(numbers.size(), found->second.size()) << name;
    double apart = 0;
    for (std::size_t i = 0; i < numbers.size(); ++i)
      apart = std::max(apart, static_cast<double>(std::abs(numbers[i] - found->second[i])));
    EXPECT_LT(apart, tolerance) << name;
  }
}

// The results are compared with those of one rank. That such plans are proven is tested once per
// kind, in StagesTrainLikeOneRank, UnequalMicroBatchesContinueFromACheckpoint and ExplainPipelined.
constexpr std::string_view kMlpSizes = "b = 32, optimizer = sgd, learning_rate = 0.05, prove = false";
constexpr std::string_view kGpt =
    "b = 8, s = 8, d = 16, h = 2, layers = 4, optimizer = sgd, learning_rate = 0.05";
const std::string kGptSizes = fmt::format("{}, prove = false", kGpt);

TEST(TrainPipelined, MicroBatchesTrainLikeTheWholeBatch) {
  const Learned whole = learn("digits_mlp", "", kDigits, 20, std::string(kMlpSizes));
  expect_alike(whole, learn("digits_mlp", "", kDigits, 20, fmt::format("{}, micro_batches = 4", kMlpSizes)),
               1e-4);
  expect_alike(
      whole, learn("digits_mlp", "ON LOCAL 2", kDigits, 20, fmt::format("{}, micro_batches = 2", kMlpSizes)),
      1e-4);
}

TEST(TrainPipelined, StagesTrainLikeOneRank) {
  const Learned whole = learn("char_gpt", "", kText, 3, kGptSizes);
  const auto staged = [&](const std::string& on, const std::string& distribution, bool proven = false) {
    expect_alike(whole,
                 learn("char_gpt", on, kText, 3,
                       fmt::format("{}, prove = {}, distribution = '{}'", kGpt, proven, distribution)),
                 1e-4);
  };
  staged("ON LOCAL 2", "stage=2: stage; micro=4; schedule 1f1b", true);
  staged("ON LOCAL 2", "stage=2: stage; micro=4; schedule zb_v");
  staged("ON LOCAL 4", "stage=2: stage; data=2: slice b; micro=4; schedule zb_h1");
  staged("ON LOCAL 4", "stage=2: stage; gpu=2: slice h, f, v; micro=2; schedule interleaved");
}

TEST(TrainPipelined, StagesWithTheirOwnMeshesTrainLikeOneRank) {
  const Learned whole = learn("char_gpt", "", kText, 2, kGptSizes);
  for (const auto& [on, distribution] :
       {std::pair{"ON LOCAL 8",
                  "stage=2: stage; stage 0 on data=4: slice b; stage 1 on data=2: slice b; stage 1 on gpu=2: "
                  "slice h, "
                  "f, v; micro=2; schedule zb_h1"},
        {"ON LOCAL 4",
         "stage=2: stage; gpu=2: slice h, f, v, s, in stage 1 slice b, shard optimizer; micro=4"},
        {"ON LOCAL 4",
         "stage=2: stage, chunks=2; gpu=2: slice b, shard parameters, in stage 0 slice h, f, v; micro=2; "
         "schedule "
         "interleaved"}}) {
    SCOPED_TRACE(distribution);
    const std::string with = fmt::format("{}, distribution = '{}'", kGptSizes, distribution);
    const Learned once = learn("char_gpt", on, kText, 2, with);
    expect_alike(whole, once, 1e-4);
    if (on != std::string_view("ON LOCAL 8"))
      EXPECT_EQ(once.tensors, learn("char_gpt", on, kText, 2, with).tensors);
  }
}

TEST(TrainPipelined, IsBitwiseReproducible) {
  const std::string with =
      fmt::format("{}, distribution = 'stage=2: stage; micro=4; schedule dualpipe'", kGptSizes);
  const Learned once = learn("char_gpt", "ON LOCAL 2", kText, 3, with),
                again = learn("char_gpt", "ON LOCAL 2", kText, 3, with);
  EXPECT_EQ(once.loss, again.loss);
  EXPECT_EQ(once.tensors, again.tensors);
}

// -- unequal numbers of micro-batches
// ----------------------------------------------------------------

TEST(TrainPipelined, UnequalMicroBatchesTrainLikeOneRank) {
  const auto mlp = [](const std::string& on, const std::string& distribution) {
    return learn("digits_mlp", on, kDigits, 12,
                 fmt::format("{}, distribution = '{}'", kMlpSizes, distribution));
  };
  const Learned whole = learn("digits_mlp", "", kDigits, 12, std::string(kMlpSizes)),
                equal = mlp("ON LOCAL 2", "data=2: slice b; micro=4");
  for (const char* takes : {"5:3", "1:7", "4:4"}) {
    SCOPED_TRACE(takes);
    const Learned unequal = mlp("ON LOCAL 2", fmt::format("data=2: slice b, takes {}; micro=4", takes));
    expect_alike(whole, unequal, 1e-4);
    expect_alike(equal, unequal, 1e-4);
  }
  for (const char* distribution :
       {"data=4: slice b, micro-batches 1:2:1:4; micro=2",
        "data=2: slice b, micro-batches 3:1; gpu=2: slice f; micro=2",
        "data=2: slice b, shard parameters, micro-batches 1:3; other=2: slice b; micro=2"}) {
    SCOPED_TRACE(distribution);
    expect_alike(whole, mlp("ON LOCAL 4", distribution), 1e-4);
  }
}

TEST(TrainPipelined, StagesWithUnequalMicroBatchesTrainLikeOneRank) {
  const Learned whole = learn("char_gpt", "", kText, 2, kGptSizes);
  for (const char* distribution :
       {"stage=2: stage; data=2: slice b, micro-batches 3:5; micro=4; schedule zb_h1",
        "data=2: slice b, micro-batches 3:1; gpu=2: slice h, f, v; micro=2"}) {
    SCOPED_TRACE(distribution);
    expect_alike(whole,
                 learn("char_gpt", "ON LOCAL 4", kText, 2,
                       fmt::format("{}, distribution = '{}'", kGptSizes, distribution)),
                 1e-4);
  }
}

// The scale of the loss is sliced for every micro-batch, without communication.
TEST(TrainPipelined, UnequalMicroBatchesTrainInLowerPrecision) {
  for (const char* precision : {"f16", "bf16"}) {
    SCOPED_TRACE(precision);
    const std::string with = fmt::format("{}, precision = {}", kMlpSizes, precision);
    const Learned equal = learn("digits_mlp", "ON LOCAL 2", kDigits, 6,
                                fmt::format("{}, distribution = 'data=2: slice b; micro=2'", with)),
                  unequal = learn(
                      "digits_mlp", "ON LOCAL 2", kDigits, 6,
                      fmt::format("{}, distribution = 'data=2: slice b, micro-batches 1:3; micro=2'", with));
    expect_alike(equal, unequal, 1e-3);
  }
}

TEST(TrainPipelined, UnequalMicroBatchesContinueFromACheckpoint) {
  const std::string with =
      "b = 32, optimizer = adam, distribution = 'data=2: slice b, shard optimizer, micro-batches 5:3; "
      "micro=4'";
  const Learned once = learn_in_parts("digits_mlp", "ON LOCAL 2", kDigits, {7}, with),
                parts = learn_in_parts("digits_mlp", "ON LOCAL 2", kDigits, {3, 4}, with);
  EXPECT_EQ(once.loss, parts.loss);
  EXPECT_EQ(once.tensors, parts.tensors);
}

// Stops the processes that this one has started, repeatedly for a while.
class SlowChildren {
 public:
  SlowChildren()
      : thread_([this](const std::stop_token& ended) {
          while (!ended.stop_requested()) {
            const std::vector<pid_t> slowed = children();
            for (const pid_t rank : slowed) stops_ += kill(rank, SIGSTOP) == 0 ? 1 : 0;
            std::this_thread::sleep_for(std::chrono::milliseconds(3));
            for (const pid_t rank : slowed) kill(rank, SIGCONT);
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
          }
        }) {}
  int stops() const { return stops_; }

 private:
  std::atomic<int> stops_ = 0;
  std::jthread thread_;
};

// Faster ranks wait: results do not depend on the speed of any rank.
TEST(TrainPipelined, ASlowRankGivesEqualBits) {
  const std::string with =
      fmt::format("{}, distribution = 'data=2: slice b, micro-batches 6:2; micro=4'", kMlpSizes);
  const auto train = [&] {
    return learn_in_parts("digits_mlp", "ON LOCAL 2", kDigits, {10}, with, "automatic");
  };
  const Learned quick = train();
  const SlowChildren slow;
  const Learned slowed = train();
  EXPECT_GT(slow.stops(), 0);
  EXPECT_EQ(quick.loss, slowed.loss);
  EXPECT_EQ(quick.tensors, slowed.tensors);
  expect_alike(learn("digits_mlp", "", kDigits, 10, std::string(kMlpSizes)), slowed, 1e-4);
}

TEST(TrainPipelined, ReportsBatchNormStatistics) {
  Session session;
  const Reply reply = session.execute(fmt::format(
      "CREATE MODEL normed (b = 8, p = 64, f = 6, c = 10) INPUT pixels[b, p], label[b] OF int32 "
      "PARAMETER w[p, f] INIT normal(0, 0.1), v[f, c] INIT normal(0, 0.1) "
      "STATE mean[f], variance[f] INIT ones AS WITH "
      "h AS (SELECT sum(pixels * w) FROM pixels, w GROUP BY b, f), "
      "n AS (SELECT batch_norm(h, mean, variance) OVER (PARTITION BY f) FROM h, mean, variance), "
      "logits AS (SELECT sum(n * v) FROM n, v GROUP BY b, c) "
      "SELECT mean(cross_entropy(logits, label) OVER (PARTITION BY b)) AS loss FROM logits, label; "
      "TRAIN normed FROM '{}' STEPS 2 WITH (micro_batches = 2, threads = 1)",
      kDigits));
  EXPECT_EQ(reply.exit_code, ExitCode::ok) << reply.complaint;
  EXPECT_NE(reply.output.find("batch norms took their statistics from 2 separate shares"), std::string::npos)
      << reply.output;
}

// Sizes at which micro-batches differ neither prove nor refute anything.
TEST(ExplainPipelined, ProvesATiledLoss) {
  Session session;
  EXPECT_TRUE(
      answer(session,
             "EXPLAIN TRAIN char_gpt WITH (b = 4, s = 8, d = 16, h = 2, layers = 1, micro_batches = 2, "
             "tiled_loss = true)")
          .at("proven")
          .get<bool>());
}

// A step that runs on this machine is estimated as it is partitioned, and proven as its ranks run
// it.
TEST(ExplainPipelined, EstimatesPlansOnThisMachine) {
  Session session;
  const auto explain = [&](const std::string& asked) {
    return answer(session, fmt::format("EXPLAIN TRAIN digits_mlp {}", asked));
  };
  const auto alone = explain("WITH (micro_batches = 4)");
  EXPECT_EQ(alone.at("plan"), "micro=4");
  EXPECT_EQ(alone.at("rows_a_micro_batch"), 16);
  EXPECT_EQ(alone.at("pipeline_stages").size(), 1u);
  EXPECT_NEAR(alone.at("bubble_rate").get<double>(), 0.0, 1e-9);
  EXPECT_TRUE(alone.at("alternatives").empty());

  // Axes of LOCAL ranks may have any names.
  const auto staged =
      explain("ON LOCAL 4 WITH (distribution = 'stage=2: stage; data=2: slice b; micro=4; schedule zb_h1')");
  EXPECT_EQ(staged.at("plan"), "stage=2: stage; data=2: slice b; micro=4; schedule zb_h1");
  EXPECT_TRUE(staged.at("proven")) << staged.at("proof");
  ASSERT_EQ(staged.at("pipeline_stages").size(), 2u);
  EXPECT_GT(staged.at("pipeline_stages")[0].at("transfer_seconds"), 0.0);
  EXPECT_GT(staged.at("bubble_rate"), 0.0);
  EXPECT_GT(staged.at("memory_per_rank_bytes"), 0);

  // The mesh of whole batches.
  const auto spread = explain("ON LOCAL 2 WITH (micro_batches = 4)");
  EXPECT_TRUE(spread.at("plan").get<std::string>().ends_with("; micro=4")) << spread.at("plan");
  EXPECT_TRUE(spread.at("plan").get<std::string>().starts_with("rank=2")) << spread.at("plan");
  EXPECT_EQ(explain("ON h100 WITH (micro_batches = 4)").at("micro_batches"), 4);
  EXPECT_EQ(explain("ON pod WITH (micro_batches = 4)").at("micro_batches"), 4);
}

// It runs, and measured times of passes are printed beside predicted ones.
TEST(ExplainPipelined, MeasuresStages) {
  const TemporaryFolder folder;
  Session session;
  const std::string page = folder / "step.html", trace = folder / "step.json";
  const auto said = answer(
      session,
      fmt::format("EXPLAIN (ANALYZE, PAGE '{}', TIMELINE '{}') TRAIN digits_mlp ON LOCAL 2 STEPS 3 WITH "
                  "(distribution = 'stage=2: stage; micro=4; schedule zb_h1', threads = 1, "
                  "transport = inproc)",
                  page, trace));
  const auto& measured = said.at("measured");
  EXPECT_EQ(measured.at("steps"), 3);
  EXPECT_GT(measured.at("step_seconds"), 0.0);
  EXPECT_GE(measured.at("bubble_rate"), 0.0);
  EXPECT_LT(measured.at("bubble_rate"), 1.0);
  for (const auto& stage : said.at("pipeline_stages")) {
    const auto& took = stage.at("measured");
    for (const char* pass : {"forward_seconds", "backward_seconds", "weight_seconds", "update_seconds"})
      EXPECT_GT(took.at(pass).get<double>(), 0.0) << pass;
    // Busy and waiting time of a stage add up to the step.
    const double busy =
        4 * (took.at("forward_seconds").get<double>() + took.at("backward_seconds").get<double>() +
             took.at("weight_seconds").get<double>());
    EXPECT_LE(busy, 4 * measured.at("step_seconds").get<double>());
  }
  const std::string html = read_file(page, 1 << 26).value(), json = read_file(trace, 1 << 26).value();
  for (const std::string_view text :
       {"measured: rank 1, stage 1", "predicted: rank 0, stage 0", "micro-batch 3"})
    EXPECT_NE(html.find(text), std::string::npos) << text;
  for (const std::string_view text :
       {"predicted: stage 1", "measured: rank 1, stage 1", "\"W3\"", "passes", "gradient sums and update"})
    EXPECT_NE(json.find(text), std::string::npos) << text;

  // The predicted timelines show the whole step: the last to end takes the predicted time.
  const std::string_view open = "id=\"data\">";
  const std::size_t begin = html.find(open) + open.size();
  const auto data = nlohmann::json::parse(html.substr(begin, html.find("</script>", begin) - begin));
  double last = 0;
  for (const auto& timeline : data.at("timelines")) {
    if (timeline.at("measured")) continue;
    for (std::size_t i = 0; i < timeline.at("begin").size(); ++i)
      last = std::max(last, timeline["begin"][i].get<double>() + timeline["length"][i].get<double>());
  }
  EXPECT_NEAR(last * 1e-9, said.at("step_seconds").get<double>(), 1e-8);
  EXPECT_NE(html.find("gradient sums and update"), std::string::npos);

  const auto alone =
      answer(session, "EXPLAIN ANALYZE TRAIN digits_mlp STEPS 2 WITH (micro_batches = 4, threads = 1)");
  EXPECT_EQ(alone.at("measured").at("ranks"), "one rank");
  EXPECT_GT(alone.at("pipeline_stages")[0].at("measured").at("backward_seconds").get<double>(), 0.0);
}

TEST(TrainPipelined, ReportsInvalidCombinations) {
  Session session;
  const auto train = [&](const std::string& on, const std::string& with) {
    return complaint(session,
                     fmt::format("TRAIN digits_mlp {} FROM '{}' STEPS 1 WITH ({})", on, kDigits, with));
  };
  EXPECT_NE(train("", "micro_batches = 5").find("b = 64 cannot be split into 5 micro-batches"),
            std::string::npos);
  EXPECT_NE(
      train("ON LOCAL 4", "distribution = 'stage=2: stage; micro=2'").find("has 2 ranks, LOCAL 4 has 4"),
      std::string::npos);
  EXPECT_NE(train("ON LOCAL 2", "distribution = 'stage=2: stage; micro=2; schedule zb_h3'").find("zb_h"),
            std::string::npos);
  for (const char* setting : {"replan_every = 2", "sync_every = 2"})
    EXPECT_NE(train("ON LOCAL 2",
                    fmt::format("{}, distribution = 'data=2: slice b, micro-batches 3:1; micro=2'", setting))
                  .find("cannot be combined with stages or micro-batches"),
              std::string::npos)
        << setting;
  EXPECT_NE(
      train("ON LOCAL 2", "distribution = 'rank=2: slice b, micro-batches 3:1'").find("micro=N is missing"),
      std::string::npos);
  EXPECT_NE(train("ON LOCAL 2", "b = 30, distribution = 'data=2: slice b, micro-batches 3:1; micro=2'")
                .find("b = 30 cannot be split into 2 micro-batches on each of 2 ranks"),
            std::string::npos);
  EXPECT_NE(train("ON LOCAL 8", "distribution = 'stage=8: stage; micro=2'").find("parts in a row"),
            std::string::npos);
  EXPECT_NE(
      train("", "micro_batches = 2, distribution = 'rank=1; micro=4'").find("the distribution has micro=4"),
      std::string::npos);
  const auto explain = [&](const std::string& asked) {
    return complaint(session, fmt::format("EXPLAIN {}", asked));
  };
  EXPECT_NE(explain("TRAIN digits_mlp WITH (micro_batches = 5)").find("b = 64 cannot be split into 5"),
            std::string::npos);
  EXPECT_NE(explain("TRAIN digits_mlp ON LOCAL 4 WITH (distribution = 'stage=2: stage; micro=2')")
                .find("has 2 ranks, LOCAL 4 has 4"),
            std::string::npos);
  EXPECT_NE(explain("INFER digits_mlp ON LOCAL 2 WITH (distribution = 'rank=2: stage; micro=2')")
                .find("only TRAIN has stages and micro-batches"),
            std::string::npos);
  EXPECT_NE(
      explain("ANALYZE TRAIN digits_mlp ON pod WITH (micro_batches = 2)").find("on this machine, not on pod"),
      std::string::npos);
}

}  // namespace
}  // namespace weft::session
