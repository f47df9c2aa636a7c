// TRAIN, INFER, SAVE and LOAD as a user runs them, on the digits of the examples.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>

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

std::string read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Reference: plain numpy reaches 0.892 to 0.906 on the last 360 rows, which other people wrote,
// after 60 epochs of Adam at 1e-3 with batches of 64.
TEST(SessionTrain, TheMlpReachesTheReferenceOnUnseenWriters) {
  Session session;
  const Json trained =
      answer(session, fmt::format("TRAIN digits_mlp FROM '{}' STEPS 1320 WITH (holdout = 360)", kDigits));
  EXPECT_LT(trained["last_loss"], 0.1 * trained["first_loss"].get<double>());
  EXPECT_EQ(trained["test"]["examples"], 360);
  EXPECT_GE(trained["test"]["accuracy"], 0.885);
}

TEST(SessionTrain, TheConvnetTrains) {
  WEFT_LONG_TEST();
  Session session;
  const Json trained =
      answer(session, fmt::format("TRAIN digits_conv FROM '{}' STEPS 220 WITH (holdout = 360)", kDigits));
  EXPECT_LT(trained["last_loss"], 0.5);
  EXPECT_GE(trained["test"]["accuracy"], 0.85);
}

TEST(SessionTrain, TheGptTrainsOnText) {
  const TemporaryFolder folder;
  std::ofstream(folder / "poem.txt") << [] {
    std::string text;
    for (int i = 0; i < 400; ++i) text += "the warp is still, the weft goes to and fro; ";
    return text;
  }();
  Session session;
  const Json trained =
      answer(session, fmt::format("TRAIN char_gpt FROM '{}' STEPS 150 WITH (b = 4, s = 24, d = 32, h = 2, "
                                  "layers = 1, learning_rate = 0.01, holdout = 2000)",
                                  folder / "poem.txt"));
  EXPECT_GT(trained["first_loss"], 5.0);  // near log 256: all bytes equally likely
  EXPECT_LT(trained["last_loss"], 1.5);
  EXPECT_TRUE(trained.contains("tokens_per_second"));
  EXPECT_GT(trained["test"]["accuracy"], 0.4);
}

// Eight steps; or four, a file, another session, and four more: the files are equal, byte for byte.
TEST(SessionTrain, ContinuesExactlyAfterSaveAndLoad) {
  const TemporaryFolder folder;
  for (const std::string model : {"digits_mlp", "digits_conv"})
    for (const std::string optimizer : {"adam", "adamw", "momentum", "sgd"}) {
      // The convnet has other kernels; each optimizer has its own states, whatever the model.
      if (model == "digits_conv" && optimizer != "adam" && !is_thorough()) continue;
      const std::string with = fmt::format("WITH (optimizer = {}, threads = 2, b = 16)", optimizer);
      Session whole, first, second;
      answer(whole, fmt::format("TRAIN {0} FROM '{1}' STEPS 8 {2}; SAVE {0} TO '{3}'", model, kDigits, with,
                                folder / "whole"));
      answer(first, fmt::format("TRAIN {0} FROM '{1}' STEPS 4 {2}; SAVE {0} TO '{3}'", model, kDigits, with,
                                folder / "half"));
      answer(second, fmt::format("LOAD {0} FROM '{3}'; TRAIN {0} FROM '{1}' STEPS 4 {2}; SAVE {0} TO '{4}'",
                                 model, kDigits, with, folder / "half", folder / "rest"));
      EXPECT_EQ(read(folder / "whole"), read(folder / "rest")) << model << " " << optimizer;
      EXPECT_NE(read(folder / "whole"), read(folder / "half"));
    }
}

TEST(SessionTrain, AnotherSeedGivesAnotherRun) {
  Session session;
  const std::string train =
      fmt::format("TRAIN digits_mlp FROM '{}' STEPS 3 WITH (from_scratch = true, seed = ", kDigits);
  const Json one = answer(session, train + "1)"), two = answer(session, train + "2)"),
             again = answer(session, train + "1)");
  EXPECT_NE(one["last_loss"], two["last_loss"]);
  EXPECT_EQ(one["last_loss"], again["last_loss"]);
}

TEST(SessionTrain, TrainContinuesFromTheSessionsWeights) {
  Session session;
  answer(session, fmt::format("TRAIN digits_mlp FROM '{}' STEPS 5", kDigits));
  EXPECT_EQ(answer(session, fmt::format("TRAIN digits_mlp FROM '{}' STEPS 5", kDigits))["first_step"], 5);
  EXPECT_EQ(answer(session, fmt::format("TRAIN digits_mlp FROM '{}' STEPS 5 WITH (from_scratch = true)",
                                        kDigits))["first_step"],
            0);
}

// 1,797 rows are 28 batches of 64 and one of 5: every row is evaluated.
TEST(SessionTrain, InferEvaluatesEveryRow) {
  Session session;
  answer(session, fmt::format("TRAIN digits_mlp FROM '{}' STEPS 300", kDigits));
  const Json found = answer(session, fmt::format("INFER digits_mlp FROM '{}'", kDigits));
  EXPECT_EQ(found["examples"], 1797);
  EXPECT_GT(found["accuracy"], 0.9);
  const Json odd = answer(session, fmt::format("INFER digits_mlp FROM '{}' WITH (b = 100)", kDigits));
  EXPECT_NEAR(odd["loss"].get<double>(), found["loss"].get<double>(), 1e-5);
  EXPECT_EQ(odd["accuracy"], found["accuracy"]);
}

TEST(SessionTrain, DivergenceNamesTheStepAndTheNode) {
  Session session;
  const std::string text = complaint(
      session,
      fmt::format("TRAIN digits_mlp FROM '{}' STEPS 200 WITH (optimizer = sgd, learning_rate = 1e18)",
                  kDigits));
  EXPECT_NE(text.find("training diverged"), std::string::npos) << text;
  EXPECT_NE(text.find("the first non-finite number came from"), std::string::npos) << text;
  EXPECT_NE(text.find(" in "), std::string::npos) << text;
  EXPECT_NE(text.find("smaller learning_rate"), std::string::npos) << text;
  // The failed training leaves nothing behind.
  EXPECT_NE(complaint(session, "SAVE digits_mlp TO '/dev/null'").find("is not trained yet"),
            std::string::npos);
}

TEST(SessionTrain, AFailedTrainKeepsWeightsAndCheckpoint) {
  const TemporaryFolder folder;
  const std::string file = folder / "c";
  Session session;
  answer(session, fmt::format("TRAIN digits_mlp FROM '{}' STEPS 7 WITH (checkpoint = '{}')", kDigits, file));
  const std::string before = read(file);
  EXPECT_FALSE(before.empty());
  complaint(session,
            fmt::format("TRAIN digits_mlp FROM '{}' STEPS 50 WITH (learning_rate = 1e30, checkpoint = '{}', "
                        "checkpoint_every = 40)",
                        kDigits, file));
  EXPECT_EQ(read(file), before);
  const Json loaded = answer(session, fmt::format("SAVE digits_mlp TO '{}'", folder / "d"));
  EXPECT_EQ(loaded["step"], 7);
  EXPECT_EQ(read(folder / "d"), before);
}

TEST(SessionTrain, ReportsInsufficientMemoryBeforeRunning) {
  Session session;
  const std::string text = complaint(
      session, fmt::format("SET memory_limit = '100 KiB'; TRAIN digits_mlp FROM '{}' STEPS 1", kDigits));
  EXPECT_NE(text.find("no plan of digits_mlp trains within 100 KiB per rank; the smallest needs"),
            std::string::npos)
      << text;
}

TEST(SessionTrain, KeepsWeightsWhenInterrupted) {
  Session session;
  int asked = 0;
  session.interrupted = [&] { return ++asked > 20; };
  const std::string text =
      complaint(session, fmt::format("TRAIN digits_mlp FROM '{}' STEPS 100000", kDigits));
  EXPECT_NE(text.find("interrupted after step"), std::string::npos) << text;
  session.interrupted = nullptr;
  EXPECT_GT(answer(session, fmt::format("TRAIN digits_mlp FROM '{}' STEPS 1", kDigits))["first_step"], 5);
}

TEST(SessionTrain, ReportsProgress) {
  Session session;
  std::vector<explain::Progress> seen;
  session.on_progress = [&](const explain::Progress& progress) { seen.push_back(progress); };
  answer(session, fmt::format("TRAIN digits_mlp FROM '{}' STEPS 50", kDigits));
  ASSERT_GE(seen.size(), 2u);
  EXPECT_EQ(seen.back().step, 50);
  EXPECT_EQ(seen.back().steps, 50);
  EXPECT_GT(seen.back().rows_per_second, 0);
  EXPECT_LT(seen.back().loss, seen.front().loss);
}

TEST(SessionTrain, RejectsACheckpointOfAnotherModel) {
  const TemporaryFolder folder;
  Session session;
  answer(session,
         fmt::format("TRAIN digits_mlp FROM '{0}' STEPS 1; SAVE digits_mlp TO '{1}'", kDigits, folder / "m"));
  EXPECT_NE(complaint(session, fmt::format("LOAD digits_conv FROM '{}'", folder / "m"))
                .find("holds the model digits_mlp"),
            std::string::npos);
  // The same name, but changed since.
  session.execute(
      "CREATE OR REPLACE MODEL digits_mlp (b = 64, p = 64, f = 32, c = 10) INPUT pixels[b, p], label[b] OF "
      "int32 "
      "PARAMETER w1[p, c] AS WITH logits AS (SELECT sum(pixels * w1) FROM pixels, w1 GROUP BY b, c) "
      "SELECT mean(cross_entropy(logits, label) OVER (PARTITION BY b)) AS loss FROM logits, label");
  EXPECT_NE(
      complaint(session, fmt::format("LOAD digits_mlp FROM '{}'", folder / "m")).find("holds w1 as [64,128]"),
      std::string::npos);
}

TEST(SessionTrain, LoadsNothingFromATruncatedCheckpoint) {
  const TemporaryFolder folder;
  Session session;
  answer(session,
         fmt::format("TRAIN digits_mlp FROM '{0}' STEPS 1; SAVE digits_mlp TO '{1}'", kDigits, folder / "m"));
  const std::string whole = read(folder / "m");
  for (const std::size_t length :
       {std::size_t{0}, std::size_t{7}, std::size_t{100}, whole.size() / 2, whole.size() - 1}) {
    std::ofstream(folder / "cut", std::ios::binary).write(whole.data(), static_cast<std::streamsize>(length));
    Session fresh;
    complaint(fresh, fmt::format("LOAD digits_mlp FROM '{}'", folder / "cut"));
    EXPECT_NE(complaint(fresh, "SAVE digits_mlp TO '/dev/null'").find("is not trained yet"),
              std::string::npos);
  }
}

// A process that only trains and saves is killed at random moments; the file is always whole.
TEST(SessionTrain, AKillDuringSaveKeepsTheFile) {
  const TemporaryFolder folder;
  const std::string file = folder / "c";
  {
    Session session;
    answer(session,
           fmt::format("TRAIN digits_mlp FROM '{}' STEPS 1 WITH (checkpoint = '{}')", kDigits, file));
  }
  std::minstd_rand random(3);
  std::int64_t latest = 1;
  for (int round = 0; round < 8; ++round) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      Session session;
      session.execute(fmt::format(
          "LOAD digits_mlp FROM '{1}'; TRAIN digits_mlp FROM '{0}' STEPS 1000000 WITH (checkpoint "
          "= '{1}', checkpoint_every = 1, threads = 1)",
          kDigits, file));
      _exit(0);
    }
    usleep(20'000 + static_cast<useconds_t>(random() % 100'000));
    kill(child, SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    const auto loaded = formats::load(file);
    ASSERT_TRUE(loaded.ok()) << loaded.error().message;
    const std::int64_t step = std::stoll(loaded->metadata.at("step"));
    EXPECT_GE(step, latest);
    latest = step;
  }
}

// Other precisions have no kernels yet: they run by definition, and agree.
TEST(SessionTrain, DoublePrecisionRunsByDefinition) {
  Session session;
  const std::string train =
      fmt::format("TRAIN digits_mlp FROM '{}' STEPS 3 WITH (from_scratch = true, b = 8", kDigits);
  const Json single = answer(session, train + ")"), twice = answer(session, train + ", precision = f64)");
  EXPECT_NEAR(single["last_loss"].get<double>(), twice["last_loss"].get<double>(), 1e-4);
}

}  // namespace
}  // namespace weft::session
