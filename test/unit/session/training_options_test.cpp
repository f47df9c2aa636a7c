// Common training features: ignored rows, schedules, clipping, changing optimizers, checkpoints,
// memory.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <regex>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "session_case.h"
#include "temporary_folder.h"
#include "thorough.h"
#include "weft/app/session/session.h"
#include "weft/formats/safetensors.h"

namespace weft::session {
namespace {

using Json = nlohmann::json;

const std::string kDigits = WEFT_SOURCE_DIR "/examples/digits.csv.gz";
const std::string kLine = WEFT_SOURCE_DIR "/test/data/line.csv";

// One step of SGD at 0.25 halves the distance of slope and height to 2 and 1.
const std::string kLineModel =
    "CREATE OR REPLACE MODEL line (b = 4) INPUT x[b], y[b] PARAMETER slope, height AS "
    "WITH gap AS (SELECT x * slope + height - y FROM x, y, slope, height) "
    "SELECT mean(gap * gap) AS loss FROM gap; ";

double tensor_at(const std::string& file, const std::string& name, std::size_t at = 0) {
  const auto loaded = formats::load(file);
  if (!loaded.ok()) throw std::runtime_error(loaded.error().message);
  const formats::TensorEntry* const entry = loaded->find(name);
  if (entry == nullptr) throw std::runtime_error("no " + name);
  if (entry->dtype == plan::DType::i64) {
    std::int64_t whole = 0;
    std::memcpy(&whole, entry->data.data() + at * sizeof whole, sizeof whole);
    return static_cast<double>(whole);
  }
  float number = 0;
  std::memcpy(&number, entry->data.data() + at * sizeof number, sizeof number);
  return static_cast<double>(number);
}

// -- the mean of a cross-entropy

// All logits are zero, so each labelled row has a loss of log 2, however many are ignored.
const std::string kGuess =
    "CREATE OR REPLACE MODEL guess (b = 8, c = 2) INPUT x[b], label[b] OF int32 PARAMETER w[c] AS "
    "WITH logits AS (SELECT x * w FROM x, w) "
    "SELECT mean(cross_entropy(logits, label) OVER (PARTITION BY b)) AS loss FROM logits, label; ";

std::string write_guesses(const TemporaryFolder& folder) {
  std::ofstream(folder / "guess.csv") << "1,-1\n1,0\n1,-1\n1,-1\n1,1\n1,0\n1,-100\n1,-1\n";
  return folder / "guess.csv";
}

TEST(TrainingOptions, IgnoresRowsWithoutALabel) {
  const TemporaryFolder folder;
  const std::string data = write_guesses(folder);
  Session session;
  const std::string train =
      "TRAIN guess {}FROM '{}' STEPS 2 WITH (from_scratch = true, optimizer = sgd, "
      "learning_rate = 1.0{})";
  const Json alone = answer(session, kGuess + fmt::format(fmt::runtime(train), "", data, ""));
  EXPECT_NEAR(alone["first_loss"].get<double>(), std::log(2.0), 1e-6);
  // Two of three labels are 0: the gradient of w is one sixth each way, from the three rows alone.
  const double gap = 1.0 / 3;  // between the logits after one step
  const double expected = (2 * std::log(1 + std::exp(-gap)) + std::log(1 + std::exp(gap))) / 3;
  EXPECT_NEAR(alone["last_loss"].get<double>(), expected, 1e-6);
  // Rows are counted over all ranks, and the plan is proven.
  const Json spread = answer(
      session, fmt::format(fmt::runtime(train), "ON LOCAL 2 ", data, ", distribution = 'rank=2: slice b'"));
  EXPECT_NEAR(spread["last_loss"].get<double>(), expected, 1e-6);
  EXPECT_FALSE(spread.contains("unproven")) << spread;
  // Testing counts the same way, for any batch size.
  EXPECT_NEAR(answer(session, fmt::format("INFER guess FROM '{}' WITH (b = 3)", data))["loss"].get<double>(),
              answer(session, fmt::format("INFER guess FROM '{}'", data))["loss"].get<double>(), 1e-6);
}

TEST(TrainingOptions, SmoothsLabels) {
  const TemporaryFolder folder;
  const std::string data = write_guesses(folder);
  std::string smooth = kGuess;
  smooth.replace(smooth.find("label) OVER"), 6, "label, smoothing => 0.2)");
  Session session;
  const std::string train =
      "TRAIN guess {}FROM '{}' STEPS 2 WITH (from_scratch = true, optimizer = sgd, "
      "learning_rate = 1.0{})";
  const Json alone = answer(session, smooth + fmt::format(fmt::runtime(train), "", data, ""));
  // With smoothing, 0.1 of a label's weight goes to the other class.
  const double wants0 = 0.9 * 2 / 3 + 0.1 / 3, gap = 2 * (wants0 - 0.5);
  const double expected = wants0 * std::log(1 + std::exp(-gap)) + (1 - wants0) * std::log(1 + std::exp(gap));
  EXPECT_NEAR(alone["last_loss"].get<double>(), expected, 1e-6);
  const Json spread = answer(
      session, fmt::format(fmt::runtime(train), "ON LOCAL 2 ", data, ", distribution = 'rank=2: slice c'"));
  EXPECT_NEAR(spread["last_loss"].get<double>(), expected, 1e-6);
  EXPECT_FALSE(spread.contains("unproven")) << spread;
  EXPECT_NE(complaint(session, std::regex_replace(smooth, std::regex("0\\.2"), "1.5"))
                .find("smoothing must be at least 0 and less than 1, found 1.5"),
            std::string::npos);
}

// -- optimizers and seeds

// Rewrites by rules do not matter here, and proving the rules takes longer than training.
constexpr std::string_view kAsWritten = "SET rules = false; ";

TEST(TrainingOptions, EachOptimizerKeepsItsOwnMoments) {
  const TemporaryFolder folder;
  const std::string file = folder / "line.safetensors";
  Session session;
  session.execute(kAsWritten);
  answer(session, kLineModel + fmt::format("TRAIN line FROM '{}' STEPS 3", kLine));
  answer(session, fmt::format("TRAIN line FROM '{}' STEPS 2 WITH (optimizer = momentum, learning_rate = 0); "
                              "SAVE line TO '{}'",
                              kLine, file));
  EXPECT_EQ(tensor_at(file, "step"), 3);
  EXPECT_NE(tensor_at(file, "slope.first"), 0);
  EXPECT_NE(tensor_at(file, "slope.momentum"), 0);
  const double paused = answer(session, fmt::format("TRAIN line FROM '{}' STEPS 1", kLine))["last_loss"];
  // The fourth step of Adam, whatever ran in between.
  answer(session, fmt::format("TRAIN line FROM '{}' STEPS 4 WITH (from_scratch = true); SAVE line TO '{}'",
                              kLine, file));
  const double slope = tensor_at(file, "slope");
  Session other;
  other.execute(kAsWritten);
  answer(other, kLineModel + fmt::format("TRAIN line FROM '{}' STEPS 3", kLine));
  answer(other, fmt::format("TRAIN line FROM '{0}' STEPS 2 WITH (optimizer = sgd, learning_rate = 0); "
                            "TRAIN line FROM '{0}' STEPS 1; SAVE line TO '{1}'",
                            kLine, file));
  EXPECT_EQ(tensor_at(file, "slope"), slope);
  EXPECT_EQ(tensor_at(file, "step"), 4);
  EXPECT_GT(paused, 0);
  // Training from scratch forgets them all.
  answer(session, fmt::format("TRAIN line FROM '{}' STEPS 1 WITH (from_scratch = true, optimizer = sgd); "
                              "SAVE line TO '{}'",
                              kLine, file));
  EXPECT_THROW(tensor_at(file, "slope.first"), std::runtime_error);
}

const std::string kDropped =
    "CREATE OR REPLACE MODEL dropped (b = 4, k = 64) INPUT x[b], y[b] PARAMETER w[k] INIT ones AS "
    "WITH h AS (SELECT dropout(x * w, rate => 0.5) FROM x, w) "
    "SELECT mean(h * h) AS loss FROM h; ";

TEST(TrainingOptions, AdamCountsItsOwnSteps) {
  const TemporaryFolder folder;
  const std::string file = folder / "dropped.safetensors";
  Session session;
  answer(
      session,
      kDropped + fmt::format("TRAIN dropped FROM '{0}' STEPS 50 WITH (optimizer = sgd, learning_rate = 0); "
                             "TRAIN dropped FROM '{0}' STEPS 1 WITH (learning_rate = 0.001); "
                             "SAVE dropped TO '{1}'",
                             kLine, file));
  EXPECT_EQ(tensor_at(file, "step"), 1);
  // The first step of Adam moves each weight by the learning rate; with a counter of 51 it would
  // move far less.
  double most = 0;
  for (std::size_t i = 0; i < 64; ++i) most = std::max(most, std::abs(tensor_at(file, "w", i) - 1));
  EXPECT_NEAR(most, 0.001, 1e-5);
}

TEST(TrainingOptions, TheSeedSelectsDropoutMasks) {
  Session session;
  const std::string train = "TRAIN dropped FROM '{}' STEPS 1 WITH (from_scratch = true, seed = {})";
  answer(session, kDropped + "SHOW MODELS");
  const auto loss = [&](int seed) {
    return answer(session, fmt::format(fmt::runtime(train), kLine, seed))["first_loss"].get<double>();
  };
  EXPECT_EQ(loss(1), loss(1));
  EXPECT_NE(loss(1), loss(2));
}

TEST(TrainingOptions, DoublesStayDoubles) {
  const TemporaryFolder folder;
  std::ofstream(folder / "near.csv") << "1.000000000001,0\n1.000000000001,0\n";
  Session session;
  const Json trained =
      answer(session,
             "CREATE MODEL near (b = 2) INPUT x[b] OF f64, y[b] OF f64 PARAMETER w OF f64 AS "
             "WITH gap AS (SELECT x - 1.0 + y * w FROM x, y, w) SELECT mean(gap) AS loss FROM gap; " +
                 fmt::format("TRAIN near FROM '{}' STEPS 1 WITH (precision = f64, optimizer = sgd)",
                             folder / "near.csv"));
  EXPECT_NEAR(trained["first_loss"].get<double>(), 1e-12, 1e-15);
}

// -- schedules and clipping

TEST(TrainingOptions, SchedulesReduceTheLearningRate) {
  Session session;
  session.execute(std::string(kAsWritten) + kLineModel + "SET optimizer = sgd; SET learning_rate = 0.25");
  for (const std::string_view where : {"", "ON LOCAL 2 "}) {
    // Rates 1 and 1/2: the loss falls to a quarter, then to 9/16 of that.
    const auto after = [&](std::string_view options, int steps = 2) {
      answer(session, fmt::format("TRAIN line {}FROM '{}' STEPS {} WITH (from_scratch = true, {})", where,
                                  kLine, steps, options));
      return answer(session, fmt::format("INFER line FROM '{}'", kLine))["loss"].get<double>();
    };
    EXPECT_NEAR(after("schedule = linear"), 5 * 0.25 * 0.5625, 1e-6);
    EXPECT_NEAR(after("warmup = 2"), 5 * 0.5625 * 0.25, 1e-6);
    // Ranks receive one number per step, whatever its source.
    if (where.empty()) {
      EXPECT_NEAR(after("schedule = linear, schedule_end = 1"), 5 * 0.25 * 0.25, 1e-6);
      EXPECT_NEAR(after("schedule = cosine"), 5 * 0.25 * 0.5625, 1e-6);
      EXPECT_NEAR(after("schedule = step, schedule_every = 1, schedule_factor = 0.5"), 5 * 0.25 * 0.5625,
                  1e-6);
    }
    // In several statements as in one.
    const double once = after("schedule = linear, schedule_steps = 4", 4);
    after("schedule = linear, schedule_steps = 4", 2);
    answer(session, fmt::format("TRAIN line {}FROM '{}' STEPS 2 WITH (schedule = linear, schedule_steps = 4)",
                                where, kLine));
    EXPECT_EQ(answer(session, fmt::format("INFER line FROM '{}'", kLine))["loss"].get<double>(), once);
  }
  EXPECT_NE(complaint(session, fmt::format("TRAIN line FROM '{}' STEPS 2 WITH (warmup = 3)", kLine))
                .find("warmup takes 3 steps, but the schedule has 2"),
            std::string::npos);
  EXPECT_NE(
      complaint(session, "SET schedule = cosinus").find("expected one of constant, linear, cosine, step"),
      std::string::npos);
}

TEST(TrainingOptions, ClipsGradientsByTheirCommonNorm) {
  Session session;
  session.execute(std::string(kAsWritten) + kLineModel + "SET optimizer = sgd; SET learning_rate = 0.25");
  answer(session, fmt::format("TRAIN line FROM '{}' STEPS 1 WITH (clip_norm = 1)", kLine));
  // The gradient is (-4, -2): a step of length 1/4 along it.
  const double norm = std::sqrt(20.0), slope = 2 - 0.25 * 4 / norm, height = 1 - 0.25 * 2 / norm;
  EXPECT_NEAR(answer(session, fmt::format("INFER line FROM '{}'", kLine))["loss"].get<double>(),
              slope * slope + height * height, 1e-5);
  // Ranks that hold shards of gradients and parameters agree on the norm.
  const std::string train =
      "TRAIN digits_mlp {}FROM '{}' STEPS 5 WITH (from_scratch = true, b = 32, optimizer = {}, "
      "learning_rate = 0.1, clip_norm = 0.05{})";
  for (const std::string_view optimizer : {"sgd", "adam"}) {
    if (optimizer == "sgd" && !is_thorough()) continue;
    const Json alone = answer(session, fmt::format(fmt::runtime(train), "", kDigits, optimizer, ""));
    for (const std::string_view spread :
         {"rank=2: slice b", "rank=2: slice f", "rank=2: slice b, shard optimizer",
          "rank=2: slice b, shard parameters"}) {
      const Json there = answer(session, fmt::format(fmt::runtime(train), "ON LOCAL 2 ", kDigits, optimizer,
                                                     fmt::format(", distribution = '{}'", spread)));
      EXPECT_NEAR(there["last_loss"].get<double>(), alone["last_loss"].get<double>(), 1e-4) << spread;
      EXPECT_FALSE(there.contains("unproven")) << spread << there;
    }
  }
}

// All batches of the line are equal, so the mean of three gradients equals one of them.
TEST(TrainingOptions, AccumulatesGradientsOverSteps) {
  Session session;
  session.execute(std::string(kAsWritten) + kLineModel);
  for (const std::string_view optimizer : {"sgd", "momentum", "adam", "adamw"})
    for (const std::string_view where : {"", "ON LOCAL 2 "}) {
      // Ranks reduce gradients before any optimizer reads them: one optimizer without a state and
      // one with.
      if (!where.empty() && optimizer != "sgd" && optimizer != "adam") continue;
      const auto loss_after = [&](int steps, std::string_view options) {
        answer(session,
               fmt::format("TRAIN line {}FROM '{}' STEPS {} WITH (from_scratch = true, optimizer = {}, "
                           "learning_rate = 0.1, {})",
                           where, kLine, steps, optimizer, options));
        return answer(session, fmt::format("INFER line FROM '{}'", kLine))["loss"].get<double>();
      };
      EXPECT_NEAR(loss_after(6, "accumulate = 3, clip_norm = 2"), loss_after(2, "clip_norm = 2"), 1e-6)
          << optimizer;
      EXPECT_NEAR(loss_after(5, "accumulate = 3"), loss_after(1, "accumulate = 1"), 1e-6) << optimizer;
    }
}

TEST(TrainingOptions, WeightDecayCanExcludeVectors) {
  Session session;
  const std::string explain =
      "EXPLAIN (FORMAT plan) TRAIN digits_mlp WITH (optimizer = adamw, weight_decay = 0.5{})";
  const auto decays = [&](std::string_view more) {
    const std::string text = session.execute(fmt::format(fmt::runtime(explain), more)).output;
    std::size_t count = 0;
    for (std::size_t at = text.find("decay=0.5"); at != std::string::npos;
         at = text.find("decay=0.5", at + 1))
      ++count;
    return count;
  };
  EXPECT_EQ(decays(""), 4u);
  EXPECT_EQ(decays(", weight_decay_on = matrices"), 2u);
}

// -- checkpoints

TEST(TrainingOptions, KeepsTheBestCheckpoint) {
  const TemporaryFolder folder;
  const std::string best = folder / "best.safetensors", last = folder / "last.safetensors";
  Session session;
  session.execute(kLineModel + "SET optimizer = sgd");
  // A learning rate of 0.5 fits the line at once, and any further step moves away again.
  const Json trained = answer(
      session, fmt::format("TRAIN line FROM '{}' STEPS 6 WITH (b = 2, holdout = 2, learning_rate = 0.6, "
                           "checkpoint = '{}', checkpoint_best = '{}', checkpoint_every = 2)",
                           kLine, last, best));
  EXPECT_EQ(trained["best"]["step"], 6);
  const Json away = answer(
      session,
      fmt::format(
          "TRAIN line FROM '{}' STEPS 4 WITH (from_scratch = true, b = 2, holdout = 2, learning_rate = 1.1, "
          "checkpoint = '{}', checkpoint_best = '{}', checkpoint_every = 2)",
          kLine, last, best));
  EXPECT_EQ(away["best"]["step"], 2);
  EXPECT_LT(std::abs(tensor_at(best, "slope") - 2), std::abs(tensor_at(last, "slope") - 2));
  EXPECT_NE(complaint(session,
                      fmt::format("TRAIN line FROM '{}' STEPS 4 WITH (checkpoint_best = '{}')", kLine, best))
                .find("checkpoint_best needs checkpoint_every"),
            std::string::npos);
}

TEST(TrainingOptions, LoadedModelsHaveTheirSizes) {
  const TemporaryFolder folder;
  const std::string file = folder / "wide.safetensors";
  Session session;
  answer(session,
         fmt::format("TRAIN digits_mlp FROM '{}' STEPS 2 WITH (f = 48, b = 16); SAVE digits_mlp TO '{}'",
                     kDigits, file));
  const Json own = answer(session, fmt::format("INFER digits_mlp FROM '{}'", kDigits));
  Session other;
  const Json loaded =
      answer(other, fmt::format("LOAD digits_mlp FROM '{}'; INFER digits_mlp FROM '{}'", file, kDigits));
  EXPECT_EQ(loaded["loss"], own["loss"]);
  answer(other, fmt::format("TRAIN digits_mlp FROM '{}' STEPS 1", kDigits));
  // Other sizes must be stated, and then do not fit; training from scratch uses the model's
  // defaults.
  EXPECT_NE(
      complaint(other, fmt::format("INFER digits_mlp FROM '{}' WITH (f = 128)", kDigits)).find("f32[64,48]"),
      std::string::npos);
  answer(other, fmt::format("TRAIN digits_mlp FROM '{0}' STEPS 1 WITH (from_scratch = true); "
                            "SAVE digits_mlp TO '{1}'",
                            kDigits, file));
  EXPECT_EQ(formats::load(file)->find("b1")->shape[0], 128);
}

// -- memory

const std::string kWide =
    "CREATE OR REPLACE MODEL wide (b = 512, p = 64, f = 8192, g = 512, c = 10) "
    "INPUT pixels[b, p], label[b] OF int32 "
    "PARAMETER w1[p, f] INIT normal(0, 0.1), w2[f, g] INIT normal(0, 0.01), w3[g, c] INIT normal(0, 0.01) AS "
    "WITH h AS (SELECT relu(sum(pixels * w1)) FROM pixels, w1 GROUP BY b, f), "
    "k AS (SELECT relu(sum(h * w2)) FROM h, w2 GROUP BY b, g), "
    "logits AS (SELECT sum(k * w3) FROM k, w3 GROUP BY b, c) "
    "SELECT mean(cross_entropy(logits, label) OVER (PARTITION BY b)) AS loss FROM logits, label; ";

double explained_bytes(Session& session, const std::string& what) {
  const Json explained = answer(session, "EXPLAIN " + what);
  double bytes = 0;
  for (const Json& count : explained["memory"]) bytes += count.get<double>();
  return bytes;
}

TEST(TrainingOptions, RejectsAStepThatExceedsTheLimit) {
  Session session;
  session.execute(kWide);
  const std::string narrow = "b = 128, f = 2048";
  const double bytes = explained_bytes(session, fmt::format("TRAIN wide WITH ({})", narrow));
  const auto train = [&](double limit) {
    return fmt::format("TRAIN wide FROM '{}' STEPS 1 WITH ({}, memory_limit = '{} KiB')", kDigits, narrow,
                       static_cast<std::int64_t>(limit / 1024));
  };
  // Less than recomputation and spilling can achieve.
  EXPECT_NE(complaint(session, train(0.3 * bytes)).find("no plan of wide trains within"), std::string::npos);
  answer(session, train(1.01 * bytes));
  // The learned weights stay in memory during training.
  EXPECT_NE(complaint(session, train(0.8 * bytes)).find("no plan of wide trains within"), std::string::npos);
  EXPECT_GT(explained_bytes(session, fmt::format("TRAIN wide WITH ({})", narrow)), 1.2 * bytes);
}

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kSanitized = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif
#else
constexpr bool kSanitized = false;
#endif

// The largest resident size of a process that ran the statements, in bytes.
double taken_by(const std::string& text) {
  const pid_t child = fork();
  if (child == 0) {
    Session session;
    const Reply reply = session.execute(text);
    _exit(reply.exit_code == ExitCode::ok ? 0 : 1);
  }
  int status = 0;
  rusage used{};
  EXPECT_EQ(wait4(child, &status, 0, &used), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << text;
  return static_cast<double>(used.ru_maxrss) * 1024;
}

TEST(TrainingOptions, ReportedMemoryMatchesUsedMemory) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer keeps freed memory and adds its own";
  const std::string train = "TRAIN wide FROM '{}' STEPS 2 WITH (threads = 1, b = {})";
  // A small run uses what every process uses; the difference is the reported memory of the step.
  const double base = taken_by(
      kWide +
      fmt::format(fmt::runtime("TRAIN wide FROM '{}' STEPS 2 WITH (threads = 1, b = 8, f = 8, g = 8)"),
                  kDigits));
  Session session;
  session.execute(kWide);
  for (const int batch : {64, 1024}) {
    const double said = explained_bytes(session, fmt::format("TRAIN wide WITH (threads = 1, b = {})", batch));
    const double taken = taken_by(kWide + fmt::format(fmt::runtime(train), kDigits, batch)) - base;
    EXPECT_LT(taken, 1.12 * said) << batch;
    EXPECT_GT(taken, 0.88 * said) << batch;
  }
}

}  // namespace
}  // namespace weft::session
