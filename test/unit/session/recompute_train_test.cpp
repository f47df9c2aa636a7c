// TRAIN that recomputes part of its forward pass: bitwise equal results in less memory.
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "session_case.h"
#include "temporary_folder.h"
#include "thorough.h"
#include "weft/formats/safetensors.h"

namespace weft::session {
namespace {

const std::string kText = WEFT_SOURCE_DIR "/README.md";
const std::string kDigits = WEFT_SOURCE_DIR "/examples/digits.csv.gz";

using Tensors = std::map<std::string, std::string>;

// The learned tensors and the last loss, bit for bit.
Tensors learned_bits(const std::string& before, const std::string& model, const std::string& on,
                     const std::string& from, const std::string& with) {
  const TemporaryFolder folder;
  const std::string file = folder / "learned.safetensors";
  Session session;
  if (!before.empty()) answer(session, before);
  const auto said =
      answer(session, fmt::format("TRAIN {} {} FROM '{}' STEPS 3 WITH ({}, seed = 3, threads = 1, "
                                  "transport = inproc, prove = false)",
                                  model, on, from, with));
  answer(session, fmt::format("SAVE {} TO '{}'", model, file));
  Tensors tensors;
  tensors["loss"] = fmt::format("{:a}", said.value("last_loss", 0.0));
  const auto loaded = formats::load(file);
  EXPECT_TRUE(loaded.ok());
  if (!loaded.ok()) return tensors;
  for (const formats::TensorEntry& entry : loaded->tensors)
    tensors[std::string(entry.name)] =
        std::string(reinterpret_cast<const char*>(entry.data.data()), entry.data.size());
  return tensors;
}

constexpr std::string_view kGpt = "b = 4, s = 16, d = 16, h = 2, layers = 2";

TEST(TrainRecompute, GivesEqualBitsOnOneRank) {
  const Tensors kept = learned_bits("", "char_gpt", "", kText, std::string(kGpt));
  for (const std::string_view what : {"layers", "selective", "gpt_block.1", "none"})
    EXPECT_EQ(learned_bits("", "char_gpt", "", kText, fmt::format("{}, recompute = '{}'", kGpt, what)), kept)
        << what;
}

TEST(TrainRecompute, GivesEqualBitsOnRanksAndPipelined) {
  const std::vector<std::string_view> hows = {"rank=2: slice h, f, v, s", "rank=2: slice b",
                                              "rank=2: slice b; micro=2", "stage=2: stage; micro=2",
                                              "stage=2: stage; micro=4; schedule zb_h1"};
  for (const std::string_view how : every(4, hows)) {
    const Tensors kept =
        learned_bits("", "char_gpt", "ON LOCAL 2", kText, fmt::format("{}, distribution = '{}'", kGpt, how));
    EXPECT_EQ(learned_bits("", "char_gpt", "ON LOCAL 2", kText,
                           fmt::format("{}, distribution = '{}; recompute layers'", kGpt, how)),
              kept)
        << how;
    EXPECT_EQ(learned_bits("", "char_gpt", "ON LOCAL 2", kText,
                           fmt::format("{}, distribution = '{}', recompute = selective", kGpt, how)),
              kept)
        << how;
  }
}

// Narrow values are rounded at their nodes, whether a fused loop reads them or they are stored.
TEST(TrainRecompute, NarrowTypesGiveEqualBits) {
  const std::vector<std::string_view> precisions = {"bf16", "f16", "f8", "pure_bf16"};
  for (const std::string_view precision : every(3, precisions)) {
    const std::string sizes = fmt::format("{}, precision = {}", kGpt, precision);
    const Tensors kept = learned_bits("", "char_gpt", "", kText, sizes);
    for (const std::string_view what : {"layers", "selective", "gpt_block.1"})
      EXPECT_EQ(learned_bits("", "char_gpt", "", kText, fmt::format("{}, recompute = '{}'", sizes, what)),
                kept)
          << precision << ", " << what;
  }
}

// RMS norms, gates, rotary positions; rows of odd length.
TEST(TrainRecompute, NarrowTypesOfOtherLayersGiveEqualBits) {
  const std::string sizes = "b = 3, s = 7, d = 18, h = 3, f = 21, layers = 2, v = 256, precision = bf16";
  const Tensors kept = learned_bits("", "llama2_7b", "", kText, sizes);
  for (const std::string_view what : {"layers", "selective"})
    EXPECT_EQ(learned_bits("", "llama2_7b", "", kText, fmt::format("{}, recompute = '{}'", sizes, what)),
              kept)
        << what;
}

TEST(TrainRecompute, NarrowTypesGiveEqualBitsOnRanksAndPipelined) {
  const std::vector<std::string_view> hows = {"rank=2: slice b; micro=2", "rank=2: slice h, f, v, s",
                                              "stage=2: stage; micro=2",
                                              "stage=2: stage; micro=4; schedule zb_h1"};
  for (const std::string_view precision : {"bf16", "f16"})
    for (const std::string_view how : every(2, hows)) {
      const auto learned = [&](std::string_view also) {
        return learned_bits(
            "", "char_gpt", "ON LOCAL 2", kText,
            fmt::format("{}, precision = {}, distribution = '{}{}'", kGpt, precision, how, also));
      };
      const Tensors kept = learned("");
      EXPECT_EQ(learned("; recompute layers"), kept) << precision << ", " << how;
      EXPECT_EQ(learned("; recompute selective"), kept) << precision << ", " << how;
    }
}

// A recomputed dropout drops the same elements as the original.
TEST(TrainRecompute, DropoutDrawsTheSameMaskAgain) {
  const std::string model =
      "CREATE MODEL dropped (b = 16, p = 64, f = 32, c = 10) INPUT pixels[b, p], label[b] OF int32 "
      "PARAMETER w[p, f] INIT normal(0, 0.1), v[f, c] INIT normal(0, 0.1) AS WITH "
      "h AS (SELECT sum(pixels * w) FROM pixels, w GROUP BY b, f), "
      "n AS (SELECT dropout(relu(h), rate => 0.3) FROM h), "
      "logits AS (SELECT sum(n * v) FROM n, v GROUP BY b, c) "
      "SELECT mean(cross_entropy(logits, label) OVER (PARTITION BY b)) AS loss FROM logits, label";
  const Tensors kept = learned_bits(model, "dropped", "", kDigits, "b = 16");
  EXPECT_EQ(learned_bits(model, "dropped", "", kDigits, "b = 16, recompute = 'h, n'"), kept);
  EXPECT_EQ(learned_bits(model, "dropped", "ON LOCAL 2", kDigits, "b = 16, recompute = 'h, n'"),
            learned_bits(model, "dropped", "ON LOCAL 2", kDigits, "b = 16"));
}

TEST(TrainRecompute, TheAnswersDistributionStatesIt) {
  Session session;
  const auto said =
      answer(session, fmt::format("TRAIN char_gpt ON LOCAL 2 FROM '{}' STEPS 1 WITH ({}, recompute = layers, "
                                  "threads = 1, transport = inproc)",
                                  kText, kGpt));
  EXPECT_NE(said.dump().find("; recompute layers"), std::string::npos) << said.dump();
}

TEST(TrainRecompute, ReportsInvalidCombinations) {
  Session session;
  const auto train = [&](const std::string& with) {
    return complaint(session,
                     fmt::format("TRAIN char_gpt FROM '{}' STEPS 1 WITH ({}, {})", kText, kGpt, with));
  };
  EXPECT_NE(train("recompute = 'blocks'").find("there is nothing named blocks to recompute"),
            std::string::npos);
  EXPECT_NE(train("recompute = 'layers, layers'").find("twice"), std::string::npos);
  EXPECT_NE(train("recompute = 3").find("expected what to recompute as text"), std::string::npos);
  EXPECT_NE(
      train("recompute = layers, distribution = 'micro=2; recompute selective'").find("give it only once"),
      std::string::npos);
}

}  // namespace
}  // namespace weft::session
