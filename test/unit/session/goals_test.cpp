// Several losses with separate parameters and optimizers, and STATEs that a model updates.
#include <cmath>
#include <cstring>
#include <fstream>
#include <sstream>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "session_case.h"
#include "temporary_folder.h"
#include "weft/app/session/session.h"
#include "weft/formats/safetensors.h"

namespace weft::session {
namespace {

const std::string kDigits = WEFT_SOURCE_DIR "/examples/digits.csv.gz";
const std::string kLine = WEFT_SOURCE_DIR "/test/data/line.csv";

std::vector<double> tensor_of(const std::string& file, const std::string& name) {
  const auto loaded = formats::load(file);
  if (!loaded.ok()) throw std::runtime_error(loaded.error().message);
  const formats::TensorEntry* const entry = loaded->find(name);
  if (entry == nullptr) throw std::runtime_error("no " + name);
  std::vector<double> numbers;
  const bool whole = entry->dtype == plan::DType::i64;
  for (std::size_t at = 0; at < entry->data.size(); at += whole ? 8 : 4) {
    std::int64_t integer = 0;
    float real = 0;
    if (whole)
      std::memcpy(&integer, entry->data.data() + at, sizeof integer);
    else
      std::memcpy(&real, entry->data.data() + at, sizeof real);
    numbers.push_back(whole ? static_cast<double>(integer) : static_cast<double>(real));
  }
  return numbers;
}

double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  EXPECT_EQ(a.size(), b.size());
  double largest = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    largest = std::max(largest, std::abs(a[i] - b[i]));
  return largest;
}

// -- states

// With SGD at 0.25 the slope goes 0, 1, 1.5, 1.75: each step halves its distance to 2.
const std::string kAverage =
    "CREATE OR REPLACE MODEL line (b = 4) INPUT x[b], y[b] PARAMETER slope, height "
    "STATE slow, seen OF i64, last[b], largest INIT constant(-1) AS "
    "WITH gap AS (SELECT x * slope + height - y FROM x, y, slope, height) "
    "SELECT mean(gap * gap) AS loss, slow FROM gap, slow "
    "UPDATE slow AS (SELECT 0.9 * slow + 0.1 * slope FROM slow, slope), seen AS (SELECT seen + 1 FROM seen), "
    "last AS (SELECT gap FROM gap), largest AS (SELECT greatest(largest, max(abs(gap))) FROM largest, gap); ";
const std::string kDescent = "optimizer = sgd, learning_rate = 0.25";

TEST(StateUpdates, FollowTheirQueriesOverSteps) {
  const TemporaryFolder folder;
  const std::string file = folder / "line.safetensors";
  Session session;
  answer(session, kAverage);
  double slow = 0;
  const double slopes[] = {0, 1, 1.5, 1.75};
  for (int step = 0; step < 4; ++step) {
    answer(session,
           fmt::format("TRAIN line FROM '{}' STEPS 1 WITH ({}); SAVE line TO '{}'", kLine, kDescent, file));
    slow = 0.9 * slow + 0.1 * slopes[step];  // with the slope at the beginning of the step
    EXPECT_NEAR(tensor_of(file, "slow").at(0), slow, 1e-6) << step;
    EXPECT_EQ(tensor_of(file, "seen").at(0), step + 1);
  }
  EXPECT_EQ(tensor_of(file, "last").size(), 4U) << "a state without readers is kept as well";
  EXPECT_GT(tensor_of(file, "largest").at(0), 0);

  // Training continues from the saved state, and INFER reads it without a change.
  Session later;
  answer(later, kAverage + fmt::format("LOAD line FROM '{}'", file));
  answer(later, fmt::format("INFER line FROM '{}'", kLine));
  answer(later,
         fmt::format("TRAIN line FROM '{}' STEPS 1 WITH ({}); SAVE line TO '{}'", kLine, kDescent, file));
  EXPECT_EQ(tensor_of(file, "seen").at(0), 5);
}

// Also where the batch, an index of two of them, is sliced.
TEST(StateUpdates, AreTheSameOnRanks) {
  const TemporaryFolder folder;
  const auto train = [&](const std::string& on, const std::string& with) {
    const std::string file = folder / "ranks.safetensors";
    Session session;
    answer(
        session,
        kAverage +
            fmt::format("TRAIN line {} FROM '{}' STEPS 3 WITH ({}, transport = inproc{}); SAVE line TO '{}'",
                        on, kLine, kDescent, with, file));
    std::vector<double> all;
    for (const char* const name : {"slope", "slow", "seen", "last", "largest"})
      for (const double number : tensor_of(file, name)) all.push_back(number);
    return all;
  };
  const std::vector<double> alone = train("", "");
  EXPECT_LT(largest_difference(alone, train("ON LOCAL 2", ", distribution = 'rank=2: slice b'")), 1e-6);
  EXPECT_LT(largest_difference(alone, train("ON LOCAL 2", "")), 1e-6);
}

// -- goals

// The model of examples/train_gan.weft.
std::string gan() {
  std::stringstream text;
  text << std::ifstream(WEFT_SOURCE_DIR "/examples/train_gan.weft").rdbuf();
  const std::string all = text.str();
  const std::size_t begin = all.find("CREATE MODEL");
  return all.substr(begin, all.find(';', begin) + 1 - begin) + " ";
}

constexpr const char* kBoth = "MINIMIZE d_loss OVER (\"d_*\") BY {}, g_loss OVER (\"g_*\") BY {}";

struct TrainedGan {
  nlohmann::json reply;
  std::vector<double> d, g, usual;
};

// Rules are enabled only where they are under test: proving takes longer than training.
TrainedGan train_gan(const std::string& statement, const std::string& rules = "false") {
  const TemporaryFolder folder;
  const std::string file = folder / "gan.safetensors";
  Session session;
  answer(session, fmt::format("SET rules = {}; ", rules) + gan());
  TrainedGan trained;
  trained.reply = answer(session, statement);
  answer(session, fmt::format("SAVE digits_gan TO '{}'", file));
  trained.d = tensor_of(file, "d_w1");
  trained.g = tensor_of(file, "g_w2");
  trained.usual = tensor_of(file, "usual");
  return trained;
}

std::string train_statement(const std::string& goals, int steps, const std::string& on = {},
                            const std::string& with = {}) {
  return fmt::format("TRAIN digits_gan {} FROM '{}' STEPS {} {} {}", on, kDigits, steps, goals, with);
}

TEST(Goals, TrainsBothLossesOfAGan) {
  const std::string adam = "adam(learning_rate = 0.001, beta1 = 0.5)";
  const TrainedGan trained =
      train_gan(train_statement(fmt::format(fmt::runtime(kBoth), adam, adam), 60), "automatic");
  const nlohmann::json& losses = trained.reply["losses"];
  ASSERT_EQ(losses.size(), 2U) << trained.reply.dump();
  for (const char* const name : {"d_loss", "g_loss"})
    EXPECT_GT(std::abs(losses[name]["last"].get<double>() - losses[name]["first"].get<double>()), 0.05)
        << name;
  EXPECT_EQ(losses["d_loss"]["last"], trained.reply["last_loss"]) << "the first loss is reported";
}

// A discriminator that is trained together with its generator takes the same step as alone, and so
// does the generator: both gradients use the weights from the beginning of the step.
TEST(Goals, LossesAreTrainedSimultaneously) {
  const auto both = train_gan(train_statement(
      fmt::format(fmt::runtime(kBoth), "sgd(learning_rate = 0.5)", "sgd(learning_rate = 2)"), 1));
  const auto d_alone =
      train_gan(train_statement("MINIMIZE d_loss OVER (\"d_*\") BY sgd(learning_rate = 0.5)", 1));
  const auto g_alone =
      train_gan(train_statement("MINIMIZE g_loss OVER (\"g_*\") BY sgd(learning_rate = 2)", 1));
  EXPECT_LT(largest_difference(both.d, d_alone.d), 1e-6);
  EXPECT_LT(largest_difference(both.g, g_alone.g), 1e-6);
  EXPECT_GT(largest_difference(both.d, g_alone.d), 1e-4) << "parameters outside all losses stay";
  EXPECT_GT(largest_difference(both.g, d_alone.g), 1e-4);
}

TEST(Goals, EverySkipsSteps) {
  const std::string goals =
      "MINIMIZE d_loss OVER (\"d_*\") BY sgd(learning_rate = 0), g_loss OVER (\"g_*\") BY adam(every = 3)";
  const auto before = train_gan(train_statement(goals, 2)), after = train_gan(train_statement(goals, 3));
  const auto untouched =
      train_gan(train_statement("MINIMIZE d_loss OVER (\"d_*\") BY sgd(learning_rate = 0)", 1));
  EXPECT_EQ(before.g, untouched.g) << "the third step is the first to train it";
  EXPECT_GT(largest_difference(after.g, before.g), 1e-4);
}

TEST(Goals, AreTheSameOnRanks) {
  const std::string goals =
      fmt::format(fmt::runtime(kBoth), "adam(clip_norm = 0.1)", "momentum(learning_rate = 0.1, every = 2)");
  const auto alone = train_gan(train_statement(goals, 6));
  const auto spread = train_gan(
      train_statement(goals, 6, "ON LOCAL 2", "WITH (transport = inproc, distribution = 'rank=2: slice b')"));
  EXPECT_LT(largest_difference(alone.d, spread.d), 1e-5);
  EXPECT_LT(largest_difference(alone.g, spread.g), 1e-5);
  EXPECT_LT(largest_difference(alone.usual, spread.usual), 1e-5);
  EXPECT_NEAR(alone.reply["losses"]["g_loss"]["last"].get<double>(),
              spread.reply["losses"]["g_loss"]["last"].get<double>(), 1e-4);
}

// As in one training: the step counter and the moments of each loss are in the file.
TEST(Goals, ContinueFromAFile) {
  const TemporaryFolder folder;
  const std::string file = folder / "half.safetensors";
  const std::string goals = fmt::format(fmt::runtime(kBoth), "adam", "adam(learning_rate = 0.01, every = 2)");
  const auto whole = train_gan(train_statement(goals, 6));
  {
    Session first;
    answer(first, "SET rules = false; " + gan());
    answer(first, train_statement(goals, 3) + fmt::format("; SAVE digits_gan TO '{}'", file));
    EXPECT_EQ(tensor_of(file, "d_loss.step").at(0), 3);
    EXPECT_EQ(tensor_of(file, "g_loss.step").at(0), 1) << "one update in three steps";
  }
  Session second;
  answer(second, "SET rules = false; " + gan());
  answer(second, fmt::format("LOAD digits_gan FROM '{}'; ", file) + train_statement(goals, 3) +
                     fmt::format("; SAVE digits_gan TO '{}'", file));
  EXPECT_EQ(tensor_of(file, "g_w2"), whole.g);
  EXPECT_EQ(tensor_of(file, "d_w1"), whole.d);
}

// Selects a part of a model by the layer that contains it.
TEST(Goals, TrainOnlyTheHead) {
  const TemporaryFolder folder;
  const std::string file = folder / "head.safetensors";
  Session session;
  answer(
      session,
      "CREATE LAYER readout(x[b, d]) (b, d, o = 4) PARAMETER w[d, o] INIT normal(0, 0.1) AS SELECT sum(x * "
      "w) FROM x, w GROUP BY b, o; "
      "CREATE MODEL two (b = 8, p = 64) INPUT pixels[b, p], label[b] OF int32 PARAMETER scale INIT ones "
      "AS WITH "
      "h AS (SELECT pixels * scale / 16 FROM pixels, scale), "
      "logits AS (SELECT * FROM readout(h[b, p AS d], o = 10)) "
      "SELECT mean(cross_entropy(logits, label) OVER (PARTITION BY b)) AS loss FROM logits, label; ");
  const auto reply = answer(
      session,
      fmt::format("TRAIN two FROM '{}' STEPS 20 MINIMIZE loss OVER (readout) BY sgd(learning_rate = 0.5)",
                  kDigits));
  EXPECT_LT(reply["last_loss"], reply["first_loss"]);
  answer(session, fmt::format("SAVE two TO '{}'", file));
  EXPECT_EQ(tensor_of(file, "scale").at(0), 1);
}

}  // namespace
}  // namespace weft::session
